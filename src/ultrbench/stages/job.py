"""What every workflow script does around its stage function."""

import contextlib
import errno
import faulthandler
import os
import re
import sys
import time
import traceback
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from ultrbench.bars import bar
from ultrbench.errors import INTERRUPTED, UserError
from ultrbench.locks import alone
from ultrbench.own_code import own_file

NOTED = Path(".snakemake/sha256")
LARGEST = 1 << 26
CHECKSUM = re.compile(b"[0-9a-f]{64}")
Part = Callable[[Any], list[Path]]
# What a machine refuses: no fault of the program, and a traceback would help nobody.
REFUSALS = {
    getattr(errno, name)
    for name in ("ENOSPC", "EDQUOT", "EFBIG", "EROFS", "EACCES", "EPERM", "EMFILE", "ENFILE", "EIO")
}


@contextlib.contextmanager
def job(snakemake: Any, largest: int = LARGEST) -> Iterator[None]:
    """Run a stage with its output in the rule's log and one thread in every library.

    A `ultrbench.errors.UserError`, a full disk, a file without access, too little memory and
    Ctrl-C end the job with a sentence, in the log and on the terminal; any other exception ends it
    with a traceback in the log.

    Results are noted by checksum in ``.snakemake/sha256/``, and a job that reads one refuses
    a file that has changed since: a flipped bit of a model or a table would pass for a result.
    What no job reads is looked at when a run starts, by `refuse_touched`.

    Parameters
    ----------
    snakemake : object
        What Snakemake gives a script; its first log file is written.
    largest : int
        Bytes of an input that is checked: 64 MB, since all of gigabytes of features is read where
        policies are trained, and nowhere else.

    Raises
    ------
    SystemExit
        With code 1, when the block raises.

    Examples
    --------
    >>> import tempfile, types
    >>> file = Path(tempfile.mkdtemp()) / "job.log"
    >>> with job(types.SimpleNamespace(log=[file])):
    ...     print("10 queries")
    >>> file.read_text().split(" in ")[0]
    '10 queries\\ndone'
    """
    started = time.monotonic()
    name = snakemake.log[0]
    try:
        # Of a run that was killed, the same job may go on. A name of a file may be no UTF-8.
        with (
            alone(name),
            Path(name).open("w", 1, encoding="utf-8", errors="backslashreplace") as log,
        ):
            faulthandler.enable(log)
            try:
                with (
                    contextlib.redirect_stdout(log),
                    contextlib.redirect_stderr(log),
                    one_thread(),
                ):
                    _refuse_changed(getattr(snakemake, "input", ()), largest)
                    from ultrbench.files import sha256_of, write_text

                    outputs = getattr(snakemake, "output", ())
                    for _, note in _notes(outputs):  # a kill may come before they are noted anew
                        note.unlink(missing_ok=True)
                    yield
                    for file, note in _notes(filter(os.path.isfile, outputs)):
                        write_text(note, sha256_of(file))
            except (Exception, KeyboardInterrupt) as error:
                sentence = sentence_of(error)
                print(f"ultrbench: {sentence or f'unexpected error, see {name}'}", file=sys.stderr)
                print(sentence or traceback.format_exc().rstrip(), file=log)
                sys.exit(1)
            finally:
                faulthandler.disable()  # once the log is closed, its number may go to another
            print(f"done in {time.monotonic() - started:.1f} s", file=log)
    except (OSError, KeyboardInterrupt) as error:  # the log cannot be written, or it waited
        print(f"ultrbench: {sentence_of(error) or error}", file=sys.stderr)
        sys.exit(1)


def refuse_touched() -> None:
    """Refuse results that were written to after their job had noted them, without reading others.

    Raises
    ------
    ultrbench.errors.UserError
        At the first one that is not what its job wrote; or with all of those whose notes are no
        checksums, as when the machine went down.

    Examples
    --------
    >>> refuse_touched()
    """
    unsure = []
    for folder, _, names in os.walk(NOTED):
        for note in (Path(folder, name) for name in sorted(names)):
            file = note.relative_to(NOTED)
            there = file.exists()
            if there and not CHECKSUM.fullmatch(note.read_bytes()):
                unsure.append(str(file))
            elif file.is_symlink() or (there and file.stat().st_mtime_ns > note.stat().st_mtime_ns):
                _refuse_changed([str(file)], LARGEST)
    if unsure:
        raise UserError(
            f"what {NOTED} notes of these was cut short, as when the machine goes down, and they"
            f" may be too: {', '.join(unsure)}. Delete them, and the next run makes them again"
        )


def _notes(files: Iterable[str]) -> Iterator[tuple[str, Path]]:
    """Yield the results of the study, each with the file that notes its checksum."""
    for file in files:
        below = Path(os.path.relpath(file))
        # A download may be replaced, as its sentences ask for, and `git` changes what is expected.
        if below.parts[0] == "results" and below.parts[:2] != ("results", "expected"):
            yield file, NOTED / below


def _refuse_changed(files: Iterable[str], largest: int) -> None:
    from ultrbench.files import sha256_of  # numpy takes its time, in which Ctrl-C may come

    for file, note in _notes(files):
        result = Path(file)
        if not (note.is_file() and (result.exists() or result.is_symlink())):
            continue
        if not result.is_file():
            raise UserError(f"{file} is no file any more: take it away, and start again")
        if result.stat().st_size > largest:
            continue
        noted = note.read_bytes()
        # Not cut short when the machine went down: of that `refuse_touched` tells.
        if CHECKSUM.fullmatch(noted) and sha256_of(file).encode() != noted:
            raise UserError(
                f"{file} is not what its job wrote: it was damaged, or changed by hand. Delete it,"
                f" and the next run makes it again; or {note}, if you put the file there"
            )


def sentence_of(error: BaseException) -> str | None:
    """Return what to tell of an error that is not the program's own; None of one that is.

    Examples
    --------
    >>> sentence_of(UserError("mine.csv: no such file")), sentence_of(KeyError("theta"))
    ('mine.csv: no such file', None)
    """
    if isinstance(error, UserError):
        return str(error)
    if isinstance(error, KeyboardInterrupt):
        return INTERRUPTED
    if isinstance(error, MemoryError):
        return (
            f"the memory does not suffice ({error}); use fewer --cores, or fewer sessions, lists or"
            " documents, and start again"
        )
    # numpy has no number for what a full disk cuts short: "80 requested and 0 written".
    if not isinstance(error, OSError):
        return None
    if isinstance(error, FileNotFoundError) and "results/" in str(error):
        return (
            f"{error.filename or error}: it went away while the job ran; if another run works in"
            " this folder, start again once that has ended"
        )
    short = error.errno is None and "written" in str(error)
    if short or error.errno in REFUSALS:
        what = "the disk took no more" if short else error.strerror
        return f"{error.filename or 'a result'}: {what}; make room or grant access, and start again"
    return None


@contextlib.contextmanager
def one_thread() -> Iterator[None]:
    """Keep every library to one thread, so that sums have one order.

    Examples
    --------
    >>> with one_thread():
    ...     os.environ["OMP_NUM_THREADS"]
    '1'
    """
    from threadpoolctl import threadpool_limits

    # The limits reach libraries that are loaded, the variables those that the stage will load.
    os.environ |= dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    with threadpool_limits(limits=1):
        yield


def import_lightgbm(kind: str = "") -> None:
    """Import LightGBM without what its scikit-learn wrappers drag in: .8 s a job, and unused here.

    Parameters
    ----------
    kind : str
        What the job runs. For ``file.py:function`` nothing is imported: code of one's own may use
        the wrappers, or give LightGBM a data frame.

    Examples
    --------
    >>> import_lightgbm()
    >>> "lightgbm" in sys.modules
    True
    """
    hidden = [name for name in ("sklearn", "pandas") if name not in sys.modules]
    if "lightgbm" not in sys.modules and not own_file(kind):
        sys.modules.update(dict.fromkeys(hidden))  # type: ignore[arg-type]  # None refuses an import
        try:
            import lightgbm  # noqa: F401
        finally:
            for name in hidden:
                del sys.modules[name]


def replicates(snakemake: Any) -> Iterator[tuple[int, Part]]:
    """Yield each seed of a job with a function that picks the seed's files out of a file list.

    The replicates of a step are one job, since each would cost more to start than to run. Lists
    of files are ordered by seed first.

    Parameters
    ----------
    snakemake : object
        What Snakemake gives a script; ``params.seeds`` are the seeds of the job.

    Yields
    ------
    seed : int
        Replicate seed.
    part : callable
        Maps a list of files to those of the seed, as paths.

    Examples
    --------
    >>> import types
    >>> params = types.SimpleNamespace(seeds=[7, 8])
    >>> for seed, part in replicates(types.SimpleNamespace(params=params)):
    ...     print(seed, [str(file) for file in part(["a", "b", "c", "d"])])
    7 ['a', 'b']
    8 ['c', 'd']
    """
    seeds = snakemake.params.seeds
    for index, seed in enumerate(bar("replicates", seeds)):

        def part(files: Any, index: int = index) -> list[Path]:
            size = len(files) // len(seeds)
            return [Path(file) for file in files[index * size : (index + 1) * size]]

        yield seed, part
