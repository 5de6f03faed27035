"""Progress bars for the logs of long steps."""

import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tqdm import tqdm

SECONDS = 5


def bar(what: str, things: Iterable[Any] | None = None, total: int | None = None) -> "tqdm":
    """Return a progress bar that writes to stderr: a job's log, in the workflow.

    Parameters
    ----------
    what : str
        What it counts.
    things : iterable, optional
        What to go through; without it, call ``update``.
    total : int, optional
        How many there are, where `things` has no length.

    Returns
    -------
    tqdm.tqdm
        Shown after five seconds, so that a short step leaves no line, and then as often.

    Examples
    --------
    >>> list(bar("replicates", [1, 2]))
    [1, 2]
    """
    from tqdm import tqdm

    return tqdm(
        things, what, total, delay=SECONDS, mininterval=SECONDS, file=sys.stderr, ascii=True
    )
