"""The ways to weight clicks: which function, and which columns of theta.csv it takes."""

from collections.abc import Callable
from importlib import import_module
from pathlib import Path

from ultrbench.propensity.estimate import read_by_position, read_propensity
from ultrbench.ranking.targets import TrainingLists
from ultrbench.simulation.log import ClickLog

WEIGHTS = {
    "ipw": ("ultrbench.ranking.targets:ipw_weights", ("relative",)),
    "affine": ("ultrbench.ranking.affine:affine_weights", ("alpha", "beta")),
    "dcm": ("ultrbench.ranking.dcm:dcm_weights", ("continuation",)),
    "policy_aware": ("ultrbench.ranking.policy_aware:policy_aware_weights", ("relative",)),
}


def weighted_clicks(kind: str, log: ClickLog, theta: Path) -> TrainingLists:
    """Return the target weights of a kind of `WEIGHTS`.

    Parameters
    ----------
    kind : str
        Name of the weights; their function is called with the log and its columns.
    log : ClickLog
        Displayed lists with clicks.
    theta : pathlib.Path
        ``theta.csv`` of the method's estimator.

    Raises
    ------
    UserError
        When the estimator has not the columns, or the log not what the weights need.
    """
    place, columns = WEIGHTS[kind]
    module, _, name = place.partition(":")
    function: Callable[..., TrainingLists] = getattr(import_module(module), name)
    return function(
        log,
        *(
            read_propensity(theta) if column == "relative" else read_by_position(theta, column)
            for column in columns
        ),
    )
