"""How the commands of the package end."""

import os
import sys
from collections.abc import Callable


def leave(main: Callable[[], int]) -> None:
    """Run a command and exit with its status; a reader that has seen enough is no error.

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
    try:
        status = main()
        sys.stdout.flush()
    except BrokenPipeError:  # the reader, such as head, has gone
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        status = 0
    sys.exit(status)
