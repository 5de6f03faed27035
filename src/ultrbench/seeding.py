"""Random streams that depend on names only, never on another stream's consumption."""

from zlib import crc32

import numpy as np

NO_NAME = 2**32 - 1


def stream(seed: int, *names: str | int) -> np.random.Generator:
    """Return the random generator of a named step of a replicate.

    Parameters
    ----------
    seed : int
        The replicate seed, 0 or more.
    *names : str or int
        What the stream is for, for example ``"sessions", 2``: texts enter by their CRC-32,
        integers (0 or more) as they are.

    Returns
    -------
    numpy.random.Generator
        Independent of every stream with other names.

    Examples
    --------
    >>> bool(stream(1, "sessions").random() == stream(1, "sessions").random())
    True
    >>> bool(stream(1, "sessions").random() == stream(1, "sessions", 0).random())
    False
    """
    words = [crc32(name.encode()) if isinstance(name, str) else name for name in names]
    # numpy fills up to four words with zeros, so that a last name 0 would be none at all.
    end = [NO_NAME] * (3 - len(words))
    return np.random.default_rng(np.random.SeedSequence([seed, *words, *end]))
