"""How the commands of the package end."""

import io
import os
import sys
from collections.abc import Callable


def leave(main: Callable[[], int]) -> None:
    """Run a command and exit with its status; a reader that has seen enough is no error.

    Names that the terminal has no letters for are shown by their codes.

    Parameters
    ----------
    main : callable
        Returns the exit status.

    Raises
    ------
    SystemExit
        Always.

    Examples
    --------
    >>> leave(lambda: 0)
    Traceback (most recent call last):
        ...
    SystemExit: 0
    """
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        status = main()
        sys.stdout.flush()
    except KeyboardInterrupt:
        print("ultrbench: interrupted", file=sys.stderr)
        status = 130
    except BrokenPipeError:  # the reader, such as head, has gone
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        status = 0
    sys.exit(status)
