"""Score propensities and rankings of one's own beside the rows of a finished study.

--theta is a table with the columns position, and relative or theta; its error is measured against
the simulator's propensities. --run is a TREC run of the test queries, documents named as in
qrels.txt of the commands export and ranking; it is measured on true grades and tested against the
study's reference. Each takes one file, which stands for all replicates, or one for each replicate,
named by its seed: mine.seed1.txt mine.seed2.txt ... With --ranker a ranker is trained with theta on
the clicks of the study, as for its own methods.

Writes a new folder with the tables of the study and the rows of one's own; the study stays as it
is. Corrections are over all methods together with these rows."""

import argparse
import re
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from ultrbench.cli.results import Place, add_place_arguments, find_place, study_config
from ultrbench.cli.shared import candidates_file, choose, dataset_folder, new_folder
from ultrbench.errors import UserError

if TYPE_CHECKING:
    import numpy as np

EXAMPLE = """--policy strong --setting static --theta my.csv --run my.txt
  python -m ultrbench score --policy strong --setting static --theta my.csv --ranker softmax"""

NAME = re.compile("[a-z0-9][a-z0-9_-]{0,63}")
LOG = ("initial", 0)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    add_place_arguments(parser)
    parser.add_argument("--theta", nargs="+", type=Path, metavar="CSV", help="propensities")
    parser.add_argument("--run", nargs="+", type=Path, metavar="RUN", help="TREC run", dest="runs")
    parser.add_argument(
        "--ranker", metavar="NAME", help="train this entry of `rankers` with --theta, too"
    )
    parser.add_argument(
        "--reference", metavar="NAME", help="method to compare with (default: the study's)"
    )
    parser.add_argument(
        "--name", metavar="NAME", help="name of the row (default: that of the file, to its dot)"
    )
    parser.add_argument(
        "--output", type=Path, help="folder to write (default RESULTS/scored/NAME/PLACE)"
    )


def _name(options: argparse.Namespace, taken: set[str]) -> str:
    file = (options.runs or options.theta)[0]
    name = options.name or file.name.partition(".")[0].lower()
    if not NAME.fullmatch(name):
        raise UserError(
            f"{name!r} is no name for a row: lower-case letters, digits, - and _ will do; give"
            " another with --name"
        )
    if taken & {name, f"{name}_ipw"}:
        raise UserError(f"The study has a method {name} already; give another name with --name.")
    return name


def _tables(place: Place, config: dict[str, Any]) -> dict[tuple[str, str], Path]:
    """Return the study's results tables by kind of candidates and of validation."""
    folder = place.results / "tables" / place.dataset
    return {
        (kind, way): folder / f"{place.policy}.{place.setting}.{kind}.{way}.csv"
        for kind in config["evaluation"]["candidates"]
        for way in config["training"]["validation"]
    }


def _finished(place: Place) -> dict[str, Any]:
    """Return the configuration of a study whose tables are there and are of this configuration."""
    from ultrbench.files import read_table
    from ultrbench.study import BASELINES, study_methods

    noted = study_config(place.results)
    per_query = place.evaluation / "per_query.parquet"
    config = noted["config"] if noted else {}
    needed = [place.results / "provenance.json", per_query]
    if noted:
        needed += _tables(place, config).values()
        needed.append(place.results / "tables" / place.dataset / "propensity_error.csv")
    if lacking := [path for path in needed if not path.is_file()]:
        raise UserError(
            f"{place.results} is not finished: {lacking[0]} is missing; run `snakemake --cores all`"
            " to its end first, with the --configfile of the study if it has one"
        )
    study = config["study"]
    for what in ("dataset", "policy", "setting"):
        names = study[{"policy": "policies"}.get(what, f"{what}s")]
        choose(getattr(place, what), names, what, " in the study that ended last")
    rows = read_table(per_query, {"method": str, "seed": int})
    methods = {*study_methods(config, place.setting), *BASELINES}
    if set(rows["method"]) != methods or set(rows["seed"]) != set(study["seeds"]):
        raise UserError(
            f"{per_query} has other methods or seeds than the study that ended last; run snakemake"
            " with the configuration of this study to its end again"
        )
    return config


def _trained(
    place: Place, config: dict[str, Any], name: str, thetas: dict[int, Path]
) -> dict[int, dict[str, "np.ndarray"]]:
    """Train a ranker with own propensities as the study trains its methods; return test scores."""
    from ultrbench.files import read_arrays
    from ultrbench.propensity.own import read_own_propensity, write_relative
    from ultrbench.simulation.log import log_files, read_log
    from ultrbench.stages.ranking import train_ranker
    from ultrbench.study import stopping_cutoff

    ranker = config["rankers"][choose(name, config["rankers"], "ranker")]
    setting = config["settings"][place.setting]
    if ranker["objective"] == "joint":
        raise UserError(f"--ranker {name}: a joint ranker comes from its estimator; take another")
    if setting["rounds"] > 1:
        raise UserError(
            f"--ranker: the setting {place.setting} has {setting['rounds']} rounds, in which every"
            " method's own ranker displays; that takes an estimator in the study, see"
            " docs/extending.md"
        )
    training = config["training"]
    scores = {}
    for seed, path in thetas.items():
        log = place.round(seed, *LOG)
        validation_theta = None
        if training["validation_theta"] != "truth":
            validation_theta = log / "theta" / f"{training['validation_theta']}.csv"
        with TemporaryDirectory(prefix="ultrbench-") as work:
            theta = Path(work, "theta.csv")
            positions = read_log(*log_files(log, "train")).positions
            write_relative(theta, read_own_propensity(path, positions))
            train_ranker(
                place.data,
                place.candidates(seed),
                [log],
                Path(work, "ranker.txt"),
                Path(work, "ranker.json"),
                Path(work, "scores.npz"),
                method={"target": "clicks", "weights": "ipw", "lists": "all"},
                objective=ranker["objective"],
                training=training,
                eps=setting["eps"],
                cutoff=stopping_cutoff(config),
                seed=seed,
                hidden_features=setting["hidden_features"],
                theta=theta,
                validation_theta=validation_theta,
            )
            scores[seed] = read_arrays(Path(work, "scores.npz"))
    return scores


def _listed(files: list[Path]) -> str:
    return ", ".join(f"`{file}`" for file in files) + (
        " for all replicates" if len(files) == 1 else ""
    )


def run(options: argparse.Namespace) -> None:
    """Score the files."""
    from ultrbench import study
    from ultrbench.datasets.split import read_split
    from ultrbench.files import write_text
    from ultrbench.stages.score import (
        by_replicate,
        read_run_scores,
        score_rankers,
        score_theta,
        verdict,
    )

    if not (options.theta or options.runs):
        raise UserError("There is nothing to score: give --theta CSV, --run RUN, or both.")
    if options.ranker and not options.theta:
        raise UserError("--ranker trains with propensities of your own; give --theta CSV too.")
    for file in [*(options.theta or []), *(options.runs or [])]:
        if file.is_dir():
            raise UserError(
                f"{file} is a folder, and a file is wanted; a results folder stands before the"
                " options: python -m ultrbench score RESULTS --theta ..."
            )
        if not file.is_file():
            raise UserError(f"{file}: no such file")
    place = find_place(options)
    config = _finished(place)
    dataset_folder(place.data)
    seeds = config["study"]["seeds"]
    for seed in seeds:
        candidates_file(place.candidates(seed), place.data)
    methods = study.study_methods(config, place.setting)
    reference = options.reference or config["study"]["reference"]
    choose(reference, [*methods, *study.BASELINES], "method", " in this setting of the study")
    # The A/A row is one against the study's reference only; against others it is like any row.
    controls = [m for m in methods if study.method_log(config, m) == "replica"]
    not_marked = controls if reference == config["study"]["reference"] else []
    name = _name(options, {*methods, *study.BASELINES})
    names = (place.dataset, place.policy, place.setting)
    labels = {m: about["label"] for m, about in config["methods"].items() if "label" in about}
    folder = options.output or place.results / "scored" / name / ".".join(names)
    lines = [f"# {name}: {', '.join(names)}", ""]
    sources = []
    with new_folder(folder) as out:
        rows = {}
        if options.theta:
            sources.append(f"propensities from {_listed(options.theta)}")
            thetas = by_replicate(options.theta, seeds, "--theta")
            row = score_theta(
                name,
                thetas,
                {seed: place.round(seed, *LOG) for seed in seeds},
                place.results / "tables" / place.dataset / "propensity_error.csv",
                out / "propensity_error",
                labels=labels,
                place=names,
            )
            lines.append(
                f"- {name}, error of theta: {row['note'] or format(row['error'], '.4f')}"
                + ("" if row["note"] else f", signed {row['signed']:+.4f}")
            )
            if options.ranker:
                rows[f"{name}_ipw"] = _trained(place, config, options.ranker, thetas)
        if options.runs:
            sources.append(f"ranking from {_listed(options.runs)}")
            test = read_split(place.data, "test")
            files = by_replicate(options.runs, seeds, "--run")
            read = {file: read_run_scores(file, test) for file in dict.fromkeys(files.values())}
            validations = config["training"]["validation"]
            rows[name] = {s: dict.fromkeys(validations, read[file]) for s, file in files.items()}
        if rows:
            tables = _tables(place, config)
            remark = (
                f"Not of the study: {' and '.join(rows)} ({'; '.join(sources)}); corrections are"
                " over all methods together with these rows."
            ).replace("`", "")
            if options.runs and len(options.runs) == 1:
                remark += (
                    f" {name} is one ranking for all replicates, so that its interval says nothing"
                    " of other clicks to learn from."
                )
            found = score_rankers(
                place.data,
                {seed: place.candidates(seed) for seed in seeds},
                rows,
                place.evaluation,
                out,
                tables=tables,
                metrics=study.measured_metrics(config),
                tested=study.metric_names(config),
                headline=study.headline_metric(config),
                reference=reference,
                not_marked=not_marked,
                labels=labels,
                evaluation=config["evaluation"],
                list_size=study.list_size(config, place.policy),
                place=names,
                remark=remark,
            )
            lines += [f"- {verdict(row)}" for row in found.to_dict("records")]
            left = {kind for kind, _ in tables} - set(found["candidates"])
            lines += [f"- not scored on {kind} candidates: documents lack" for kind in sorted(left)]
        print("\n".join(lines))
        lines += ["", f"Made of {'; '.join(sources)}, and of the study in `{place.results}`."]
        for table in sorted(out.glob("*.md"), reverse=True):
            lines += ["", f"## {table.stem}", "", table.read_text(encoding="utf-8").rstrip()]
        write_text(out / "score.md", "\n".join(lines) + "\n")
    print(f"\nwrote {folder}; score.md has all tables")
