"""What several commands need: definitions of the configuration, click logs, outputs."""

import argparse
import difflib
import shutil
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import ultrbench
from ultrbench.errors import UserError
from ultrbench.files import half_of, read_arrays, read_json, reading, sha256_of

ROOT = Path(ultrbench.__file__).parents[2]
ABOUT_LOG = "log.json"


def choose(given: str, known: Collection[str], what: str, where: str = "") -> str:
    """Return a name that is known.

    Raises
    ------
    UserError
        With the nearest names, or all of them.

    Examples
    --------
    >>> choose("crosfit", ["dla", "crossfit"], "estimator", " in the configuration")
    Traceback (most recent call last):
        ...
    ultrbench.errors.UserError: There is no estimator `crosfit` in the configuration; do you mean
    crossfit?
    """
    if given in known:
        return given
    near = difflib.get_close_matches(given, known, n=3)
    hint = f"do you mean {' or '.join(near)}?" if near else f"there are: {', '.join(known)}."
    raise UserError(f"There is no {what} `{given}`{where}; {hint}")


def add_config_arguments(parser: argparse.ArgumentParser, what: str | None = None) -> None:
    """Add ``--configfile``, and ``--set`` for the keys of what the command works with."""
    parser.add_argument(
        "--configfile",
        type=Path,
        metavar="FILE",
        help="a configuration that is laid over config/config.yaml, as for snakemake",
    )
    if what:
        parser.add_argument(
            "--set",
            nargs="+",
            default=[],
            metavar="KEY=VALUE",
            help=f"other values for keys of {what}, as config/README.md names them",
        )


def read_definition(
    options: argparse.Namespace, section: str, name: str | None = None
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the checked configuration, and of it the definition that a command works with.

    Parameters
    ----------
    options : argparse.Namespace
        With what `add_config_arguments` added.
    section : str
        Section of the configuration.
    name : str, optional
        Name of the definition; the section itself is the definition otherwise.

    Raises
    ------
    UserError
        For a mistake in the file or in ``--set``, or an unknown name.
    """
    from snakemake.utils import update_config

    from ultrbench.configuration import read_config
    from ultrbench.configuration_problems import schema_problems
    from ultrbench.datasets.registry import load_registry
    from ultrbench.yaml_files import misreadings, parse_yaml, read_yaml

    schemas = ROOT / "workflow/schemas"
    if not schemas.is_dir():
        raise UserError(
            f"{ROOT} is no checkout of ultrbench; install it with `pip install -e .` in its folder"
        )
    config = read_yaml(ROOT / "config/config.yaml")
    config["registry"] = str(ROOT / config["registry"])
    if options.configfile:
        own = read_yaml(options.configfile)
        update_config(config, _mapping(own, options.configfile))
    definition = _mapping(config.setdefault(section, {}), section)
    if name is not None:
        what = "policy" if section == "policies" else section.removesuffix("s")
        choose(name, definition, what, " in the configuration")
        definition = _mapping(definition[name], f"{section}.{name}")
    given: set[str] = set()
    for text in getattr(options, "set", []):
        key, equals, value = text.partition("=")
        if not (key and equals):
            raise UserError(f"--set {text}: KEY=VALUE is wanted, such as eta=2")
        if key in given:
            raise UserError(f"--set {text}: {key} is set twice; set it once")
        given.add(key)
        if sentences := misreadings(value, f"--set {text}"):
            raise UserError("\n".join(sentences))
        definition[key] = parse_yaml(value, f"--set {text}")
    schema = read_yaml(schemas / "config.schema.yaml")
    registry = load_registry(config["registry"], read_yaml(schemas / "datasets.schema.yaml"))
    checked = read_config(config, schema, registry)
    if name is None:
        return checked, checked[section]
    # What a study does not use may lack keys, but here it is used.
    lacks = [
        problem.sentence
        for problem in schema_problems({section: {name: definition}}, schema)
        if problem.path[:2] == (section, name) and "methods" not in problem.path
    ]
    if lacks:
        raise UserError("\n".join(lacks))
    return checked, checked[section][name]


def _mapping(value: object, where: object) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise UserError(f"{where}: a mapping of keys is wanted, got {value!r:.40}")
    return value


def read_entries(options: argparse.Namespace) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the checked configuration and the registry of data sets that it names."""
    from ultrbench.datasets.registry import load_registry
    from ultrbench.yaml_files import read_yaml

    config, _ = read_definition(options, "study")
    schema = read_yaml(ROOT / "workflow/schemas/datasets.schema.yaml")
    return config, load_registry(config["registry"], schema)


def seed_argument(parser: argparse.ArgumentParser) -> None:
    """Add ``--seed``."""

    def seed(text: str) -> int:
        if not (text.isascii() and text.isdigit() and len(text) < 11 and int(text) < 2**31):
            raise argparse.ArgumentTypeError(
                f"a whole number from 0 to {2**31 - 1} is wanted, got {text!r:.40}"
            )
        return int(text)

    parser.add_argument(
        "--seed", type=seed, default=1, metavar="N", help="replicate seed (default 1)"
    )


def dataset_folder(folder: Path) -> Path:
    """Return the folder of a prepared data set.

    Raises
    ------
    UserError
        Where it is none.

    Examples
    --------
    >>> dataset_folder(Path("nowhere"))
    Traceback (most recent call last):
        ...
    ultrbench.errors.UserError: nowhere: no folder of a prepared data set (it has no dataset.json);
    make one with `python -m ultrbench data`
    """
    from ultrbench.datasets.split import SPLITS, read_split, split_files

    if not (folder / "dataset.json").is_file():
        raise UserError(
            f"{folder}: no folder of a prepared data set (it has no dataset.json); make one with"
            " `python -m ultrbench data`"
        )
    about = folder / "dataset.json"
    with reading(about, "what `python -m ultrbench data` says of a data set"):
        read = read_json(about)
        if "features_sha256" not in read:
            raise ValueError("it notes no checksums of the features, as an older version did not")
        for split in SPLITS:
            sizes = (read["splits"][split]["queries"], read["splits"][split]["documents"])
            lists = read_split(folder, split)
            if sha256_of(split_files(folder, split)[0]) != read["features_sha256"][split]:
                raise ValueError(f"the features of {split} have changed since")
            if sizes != (len(lists.query_ids), len(lists.grades)):
                raise ValueError(f"{split} has {len(lists.grades)} documents, not {sizes[1]}")
            if lists.grades.max(initial=0) > read["ymax"]:
                raise ValueError(f"{split} has a grade above ymax")
    return folder


def candidates_file(path: Path, dataset: Path) -> Path:
    """Return a file of candidates that was made from a data set.

    Raises
    ------
    UserError
        Where it is none, or was made from another data set.
    """
    about = read_json(dataset / "dataset.json")["splits"]
    if not path.is_file():
        raise UserError(f"{path}: no such file")
    with reading(path, "candidates, which `python -m ultrbench policies` writes"):
        arrays = read_arrays(path)
        shown = {split: arrays[f"{split}_documents"] for split in about}
        same = len(arrays["test_all_scores"]) == about["test"]["documents"]
        for split, documents in shown.items():
            queries, scores = arrays[f"{split}_queries"], arrays[f"{split}_scores"]
            if not len(queries) == len(documents) or scores.shape != documents.shape:
                raise ValueError(f"the arrays of {split} have several lengths")
            same &= documents.max(initial=-1) < about[split]["documents"]
            same &= queries.max(initial=-1) < about[split]["queries"]
        same &= len(shown["vali"]) == about["vali"]["queries"]
    if not same:
        raise UserError(
            f"{path}: these candidates are of another data set than {dataset}; make them anew with"
            " `python -m ultrbench policies`"
        )
    return path


def log_sources(folder: Path) -> dict[str, Path]:
    """Return what a log folder says of its data set and candidates: itself, or its ``log.json``.

    A folder of `python -m ultrbench export` holds both, one of `clicks` names them.

    Raises
    ------
    UserError
        Where it is no folder of a click log.

    Examples
    --------
    >>> log_sources(Path("results"))
    Traceback (most recent call last):
        ...
    ultrbench.errors.UserError: results: no folder of a click log (it has no train.lists.parquet);
    docs/data-model.md says what is in one
    """
    if not (folder / "train.lists.parquet").is_file():
        raise UserError(
            f"{folder}: no folder of a click log (it has no train.lists.parquet);"
            " docs/data-model.md says what is in one"
        )
    own = {"dataset": folder, "candidates": folder / "candidates.npz"}
    if all(path.exists() for path in (folder / "dataset.json", own["candidates"])):
        return own
    if not (folder / ABOUT_LOG).is_file():
        return {}
    with reading(folder / ABOUT_LOG, "what `python -m ultrbench clicks` says of a log"):
        about = read_json(folder / ABOUT_LOG)
        return {key: folder / about[key] for key in own}


@contextmanager
def checked_logs(folders: Sequence[Path], dataset: Path | None) -> Iterator[list[Path]]:
    """Yield checked copies of the folders of a click log; sentences name the folders themselves.

    Raises
    ------
    UserError
        With file and row, where a log is not as docs/data-model.md describes it; or where a folder
        is given twice.
    """
    from ultrbench.stages.clicks import import_clicks

    there = [folder.resolve() for folder in folders]
    for folder, place in zip(folders, there, strict=True):
        if there.count(place) > 1:
            raise UserError(f"--log {folder} is given twice: its sessions would count twice")
    with TemporaryDirectory(prefix="ultrbench-") as work:
        copies = {Path(work, str(number)): folder for number, folder in enumerate(folders)}
        try:
            for copy, folder in copies.items():
                import_clicks(dataset, folder, copy, later_rounds=True)
            yield list(copies)
        except UserError as error:
            text = str(error)
            for copy, folder in copies.items():
                text = text.replace(str(copy), str(folder))
            raise UserError(text) from None


def new_files(*paths: Path) -> None:
    """Refuse to write over files.

    Examples
    --------
    >>> new_files(Path(__file__))
    Traceback (most recent call last):
        ...
    ultrbench.errors.UserError: ...shared.py is there already, and is not overwritten; choose
    another --output, or take it away
    """
    for path in paths:
        if path.exists():
            raise UserError(
                f"{path} is there already, and is not overwritten; choose another --output, or"
                " take it away"
            )


def with_suffix(path: Path, suffix: str) -> Path:
    """Return the path of an output, which must end in a suffix.

    Examples
    --------
    >>> with_suffix(Path("theta"), ".csv")
    Traceback (most recent call last):
        ...
    ultrbench.errors.UserError: --output theta: a file that ends in .csv is wanted
    """
    if path.suffix != suffix:
        raise UserError(f"--output {path}: a file that ends in {suffix} is wanted")
    return path


@contextmanager
def new_folder(path: Path) -> Iterator[Path]:
    """Yield a folder to fill, which becomes `path` when the block succeeds.

    Raises
    ------
    UserError
        When `path` is there and not an empty folder.

    Examples
    --------
    >>> with TemporaryDirectory() as work:
    ...     with new_folder(Path(work, "a")) as half:
    ...         _ = (half / "b.txt").write_text("whole")
    ...     print(Path(work, "a", "b.txt").read_text())
    whole
    """
    if not path.name:
        raise UserError(f"--output {path}: the name of a new folder is wanted")
    if not path.is_dir() or any(path.iterdir()):
        new_files(path)
    made = [folder for folder in path.parents if not folder.exists()]
    path.parent.mkdir(parents=True, exist_ok=True)
    half = half_of(path)
    half.mkdir()
    try:
        yield half
        half.replace(path)
    except BaseException:
        shutil.rmtree(half)
        for folder in made:
            with suppress(OSError):  # somebody else has put something there
                folder.rmdir()
        raise
