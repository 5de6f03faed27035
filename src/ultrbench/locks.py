"""One process at a time for what several may prepare."""

import errno
import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def alone(path: str | Path) -> Iterator[None]:
    """Wait until no other process prepares `path`, and keep others waiting during the block.

    Projects that share a downloads folder then fetch a file once, and a job that outlived its
    killed run writes nothing over what the next run makes. The lock ends with its process, however
    that ends; there is none on a file system that knows no locks.

    Parameters
    ----------
    path : path-like
        The file to be; its folder is made if it is missing.

    Examples
    --------
    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> with alone(folder / "a.zip"):
    ...     [file.name for file in folder.iterdir()]
    ['.a.zip.lock']
    >>> list(folder.iterdir())
    []
    """
    lock = Path(path).with_name(f".{Path(path).name}.lock")
    lock.parent.mkdir(parents=True, exist_ok=True)
    while True:
        with lock.open("w") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                print(f"{path}: another process is at it, this one waits", flush=True)
                fcntl.flock(file, fcntl.LOCK_EX)
            except OSError as error:
                if error.errno not in (errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP):
                    raise
            try:
                if not os.path.samestat(lock.stat(), os.fstat(file.fileno())):
                    continue
            except FileNotFoundError:  # the one before has taken the locked file away
                continue
            try:
                yield
            finally:
                lock.unlink(missing_ok=True)
            return
