"""How the numbers of two runs differ, in words, and why that may be."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import isnan, sqrt
from textwrap import shorten
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd

# Half of the last decimal that tables print.
PRINTED = 0.0005
# Standard errors of the difference of two independent runs, when two runs need not be the same.
SPREAD = 3
COMPUTING = ("lightgbm", "numpy", "pandas", "pyarrow", "scikit-learn", "scipy")
# Paths and names that no number hangs on.
_APART = ("downloads", "registry", "claims", "keep_click_logs")


@dataclass(frozen=True)
class Tolerance:
    """What of a table is compared, and how far it may be off.

    Attributes
    ----------
    keys : sequence of str
        Columns that name a row.
    numbers : mapping of str to str
        Columns that are compared, with the column of the standard error of each.
    words : sequence of str
        Columns that must be equal.
    """

    keys: Sequence[str]
    numbers: Mapping[str, str]
    words: Sequence[str] = ()


TABLES = {
    "main": Tolerance(
        ("dataset", "policy", "setting", "candidates", "validation", "method", "metric"),
        {"mean": "mean_se"},
        ("mark",),
    ),
    "propensity_error": Tolerance(
        ("dataset", "policy", "setting", "method"), {"error": "error_se", "signed": "signed_se"}
    ),
    "claims": Tolerance(
        ("claim", "dataset", "policy", "setting", "candidates", "validation", "method", "against"),
        {"effect": "effect_se"},
        ("verdict",),
    ),
}


@dataclass(frozen=True)
class Difference:
    """One number or word that differs: a sentence, and by how many tolerances it is off."""

    sentence: str
    size: float


def differences(
    expected: "pd.DataFrame", found: "pd.DataFrame", table: str, *, same: bool
) -> tuple[int, list[Difference]]:
    """Compare a table of two runs.

    Parameters
    ----------
    expected, found : pandas.DataFrame
        With the columns that `TABLES` names for it.
    table : str
        A key of `TABLES`.
    same : bool
        Whether the runs must be the same: numbers are equal to the three decimals that tables
        print, words are equal. Otherwise a number may be off by three standard errors of the
        difference of two independent runs, each error from the spread over replicates, and a word
        may differ where the numbers of its row do not.

    Returns
    -------
    compared : int
        Numbers and words that were compared.
    differences : list of Difference
        The largest first.

    Examples
    --------
    >>> import pandas as pd
    >>> a = pd.DataFrame({"dataset": ["mine"], "policy": "weak", "setting": "static",
    ...                   "method": "dla", "error": 0.1, "error_se": 0.01, "signed": -0.1,
    ...                   "signed_se": 0.01})
    >>> _, [one] = differences(a, a.assign(error=0.2), "propensity_error", same=False)
    >>> one.sentence
    'mine, weak, static, dla: error is 0.2000, expected 0.1000 (tolerance 0.0424)'
    >>> differences(a, a.assign(error=0.14), "propensity_error", same=False)
    (2, [])
    """
    about = TABLES[table]
    keys = list(about.keys)
    expected, found = (
        # A column without a word is read as one of missing numbers.
        frame.assign(**frame[[*keys, *about.words]].astype(object).where(frame.notna(), ""))
        for frame in (expected, found)
    )
    both = expected.merge(found, "outer", keys, suffixes=("", "_found"), indicator=True, sort=False)
    compared, off = 0, []

    def place(row: Mapping[str, Any]) -> str:
        return ", ".join(str(row[key]) for key in keys if row[key] not in ("", None))

    for frame in (expected, found):
        for row in frame[frame.duplicated(keys)].to_dict("records"):
            off.append(Difference(f"{place(row)}: it stands in {table} twice", float("inf")))
    for row in both.to_dict("records"):
        where = place(row)
        if row["_merge"] != "both":
            lacks = "the run lacks it" if row["_merge"] == "left_only" else "it was not expected"
            off.append(Difference(f"{where}: {lacks}", float("inf")))
            continue
        own: list[Difference] = []
        for column, spread in about.numbers.items():
            compared += 1
            own += _number(row, column, spread, where, same)
        for column in about.words:
            compared += 1
            if row[column] != row[f"{column}_found"] and (same or own):
                text = f"{where}: {column} is {_word(row[f'{column}_found'])}, "
                own.append(Difference(text + f"expected {_word(row[column])}", float("inf")))
        off += own
    return compared, sorted(off, key=lambda difference: -difference.size)


def _number(
    row: Mapping[str, Any], column: str, spread: str, where: str, same: bool
) -> Iterator[Difference]:
    expected, found = row[column], row[f"{column}_found"]
    if isnan(expected) and isnan(found):
        return
    allowed = PRINTED
    if not same and not isnan(row[spread]):
        allowed = max(PRINTED, SPREAD * sqrt(2) * row[spread])
    size = abs(found - expected) / allowed
    # The digits that were written may have been rounded by half of the sixth.
    if isnan(size) or size > 1 + 1e-6:
        sentence = f"{where}: {column} is {found:.4f}, expected {expected:.4f}"
        yield Difference(
            f"{sentence} (tolerance {allowed:.4f})", float("inf") if isnan(size) else size
        )


def _word(word: Any) -> str:
    return str(word) or "none"


def causes(expected: Mapping[str, Any], found: Mapping[str, Any]) -> list[str]:
    """Return what differs between the makings of two runs, the likeliest cause first.

    Parameters
    ----------
    expected, found : mapping
        Two ``provenance.json``, see `ultrbench.stages.provenance.write_provenance`.

    Returns
    -------
    list of str
        A sentence each, without a full stop; nothing when they are the same but for the commit.

    Examples
    --------
    >>> one = {"config": {"study": {"seeds": [1]}}, "datasets": {}, "packages": {"lightgbm": "4.6"},
    ...        "python": "3.11.2", "machine": "x86_64"}
    >>> causes(one, one | {"packages": {"lightgbm": "4.7"}, "python": "3.11.9"})
    ['another lightgbm: 4.7, expected 4.6']
    """
    said = []
    settings = [_flat(run["config"]) for run in (expected, found)]
    for key in dict.fromkeys([*settings[0], *settings[1]]):
        one, other = (values.get(key, "not set") for values in settings)
        if key.split(".")[0] not in _APART and one != other:
            what = "other seeds" if key == "study.seeds" else f"another configuration: {key} is"
            said.append(f"{what} {_short(other)}, expected {_short(one)}")
    for name in dict.fromkeys([*expected["datasets"], *found["datasets"]]):
        one, other = (run["datasets"].get(name) for run in (expected, found))
        if one and other and one != other:
            parts = [key for key in one | other if one.get(key) != other.get(key)]
            said.append(f"other data: {', '.join(parts)} of {name} differ")
    for name in COMPUTING:
        one, other = (run["packages"].get(name, "none") for run in (expected, found))
        if one != other:
            said.append(f"another {name}: {other}, expected {one}")
    versions = [".".join(run["python"].split(".")[:2]) for run in (expected, found)]
    if versions[0] != versions[1]:
        said.append(f"another Python: {versions[1]}, expected {versions[0]}")
    if expected["machine"] != found["machine"]:
        said.append(
            f"another platform, which rounds differently: {found['machine']}, "
            f"expected {expected['machine']}"
        )
    return said


def _short(value: Any) -> str:
    return shorten(str(value), 70, placeholder=" ...")


def _flat(config: Mapping[str, Any], above: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for key, value in config.items():
        if isinstance(value, Mapping):
            flat |= _flat(value, f"{above}{key}.")
        else:
            flat[f"{above}{key}"] = value
    return flat
