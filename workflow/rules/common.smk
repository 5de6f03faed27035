import re
import sys
from pathlib import Path

from ultrbench import study, variations
from ultrbench.configuration import read_config
from ultrbench.datasets.registry import load_registry
from ultrbench.errors import UserError
from ultrbench.own_code import own_file
from ultrbench.propensity.estimate import ESTIMATORS
from ultrbench.reporting.check import TABLES as COMPARED
from ultrbench.reporting.claims import THETA_MEASURES, claim_parts, load_claims
from ultrbench.reporting.progress import advice_on, read_run
from ultrbench.simulation.behaviour import CLICK_MODELS
from ultrbench.ranking.weights import WEIGHTS
from ultrbench.stages.data import find_source
from ultrbench.stages.features import binned_files
from ultrbench.stages.job import refuse_touched
from ultrbench.stages.sources import PACKAGE, import_closure, imports
from ultrbench.yaml_files import read_yaml

ROOT = Path(workflow.basedir)

# With a --configfile Snakemake does not mind that the default one is absent.
if not Path("config/config.yaml").exists():
    sys.exit(
        f"ultrbench: there is no config/config.yaml in {Path.cwd()}; start snakemake in the folder "
        "of the Snakefile, or give a --directory that has a copy of config/"
    )

for folder in [
    "",
    *"data policies runs evaluation tables figures logs benchmarks".split(),
]:
    if Path("results", folder).is_file():
        sys.exit(
            f"ultrbench: {Path('results', folder)} is a file; a folder is wanted, take it away"
        )

try:
    SCHEMAS = {
        name: read_yaml(ROOT / f"workflow/schemas/{name}.schema.yaml")
        for name in ("config", "datasets", "claims")
    }
    REGISTRY = load_registry(config["registry"], SCHEMAS["datasets"])
    config = read_config(config, SCHEMAS["config"], REGISTRY, workflow.configfiles)
    config = read_config(variations.derive(config), SCHEMAS["config"], REGISTRY)
    CLAIMS = load_claims(config["claims"], SCHEMAS["claims"])
    # The nodes of a cluster start while others write.
    if workflow.is_main_process and "--unlock" not in sys.argv:
        refuse_touched()
except UserError as error:
    sys.exit(f"ultrbench: {error}")
except OSError as error:  # a name that no file can have, a folder without access
    sys.exit(
        f"ultrbench: {str(error.filename):.99}: {error.strerror}; put the configuration right"
    )

STUDY = config["study"]
SEEDS = STUDY["seeds"]
SIMULATED = [name for name, s in config["settings"].items() if "click_log" not in s]
IMPORTED = [name for name, s in config["settings"].items() if "click_log" in s]

DATA = "results/data/{dataset}"
CANDIDATES = "results/policies/{dataset}/{policy}/seed{seed}.npz"
BINNED = [str(file) for file in binned_files(Path(CANDIDATES))]
ROUND = "results/runs/{dataset}/{policy}/{setting}/seed{seed}/{track}/round{round}"
RANKER = "results/runs/{dataset}/{policy}/{setting}/seed{seed}/{method}/round{round}"
THETA = f"{ROUND}/theta/{{estimator}}"
ESTIMATION_BENCHMARK = "results/benchmarks/propensity/{dataset}/{policy}/{setting}/{track}.{round}.{estimator}.tsv"
EVALUATION = "results/evaluation/{dataset}/{policy}/{setting}"
TABLE = "results/tables/{dataset}/{policy}.{setting}.{candidates}.{validation}"
SWEEP = "results/sweeps/{dataset}/{sweep}"
PLAIN_TABLE = "results/tables/{dataset}/{policy}.{setting}.{table}"
TREC = "results/trec/{dataset}"
FIGURE = "results/figures/{dataset}/{name}"
FIGURE_FILES = ["pdf", "png", "svg"]
LOG_FILES = [
    "train.lists.parquet",
    "train.clicks.parquet",
    "vali.lists.parquet",
    "vali.clicks.parquet",
]
HELD_OUT_FILES = ["test.lists.parquet", "test.clicks.parquet"]
SPLIT_FILES = [
    f"{split}.{kind}"
    for split in ("train", "vali", "test")
    for kind in ("features.npy", "lists.npz")
]
KINDS = config["evaluation"]["candidates"]
VALIDATIONS = config["training"]["validation"]
LABELS = {
    name: method["label"]
    for name, method in config["methods"].items()
    if "label" in method
}


def names(words):
    """A wildcard constraint that matches these names, and nothing when there are none."""
    return "|".join(words) or "(?!)"


wildcard_constraints:
    dataset=names(STUDY["datasets"]),
    policy=names(config["policies"]),
    setting=names(config["settings"]),
    track=names([*study.LOGS, *config["methods"]]),
    method=names(config["methods"]),
    estimator=names(config["estimators"]),
    sweep=names(config["sweeps"]),
    round=r"\d+",
    seed=r"\d+",


def per_seed(pattern, **values):
    """The files of all replicates, ordered by seed first: they are one job."""
    return expand(pattern, seed=SEEDS, allow_missing=True, **values)


def click_log(files):
    """Click logs of the simulation, which may go once nothing needs them any more."""
    return files if config["keep_click_logs"] else temp(files)


def at(pattern, wildcards, **values):
    """Fill a pattern with wildcards and other values, which come first."""
    return pattern.format(**dict(wildcards.items()) | values)


def code(*names):
    """The package's source files that a stage imports, so that an edit re-runs what it touches."""
    return import_closure([f"ultrbench.{name}" for name in names])


def figure_files(*stems):
    """The files of figures; `snakemake --report` shows the svg, with the caption of its kind."""
    files = []
    for stem in stems:
        kind = Path(stem).name.partition(".")[0]
        about = {"data set": Path(stem).parent.name, "figure": Path(stem).name}
        shown = report(
            f"{stem}.svg",
            caption=str(ROOT / f"workflow/report/{kind}.rst"),
            category="Figures",
            labels=about,
        )
        files += [f"{stem}.pdf", f"{stem}.png", shown]
    return files


def dataset_files(wildcards):
    return expand(
        f"{DATA}/{{file}}",
        dataset=wildcards.dataset,
        file=["dataset.json", *SPLIT_FILES],
    )


def track_of(method, round_):
    """Whose log a method works on: round 0 is shared, later rounds show its own rankers."""
    return method if round_ else study.method_log(config, method)


def rounds_used(setting, round_):
    """The logging rounds that estimators and rankers of a round learn from."""
    if config["settings"][setting]["training_rounds"] == "last":
        return [round_]
    return list(range(round_ + 1))


def history(wildcards, owner, files):
    """The logs that a method (or the shared track of round 0) works on, by seed, then round."""
    round_ = int(wildcards.round)
    return [
        at(
            f"{ROUND}/{file}",
            wildcards,
            seed=seed,
            round=r,
            track=owner if owner in study.LOGS else track_of(owner, r),
        )
        for seed in SEEDS
        for r in rounds_used(wildcards.setting, round_)
        for file in files
    ]


def final_rounds(setting):
    """(method, last round) of the methods of a setting, in the order of the table's rows."""
    return [
        (method, study.final_round(config, setting, method))
        for method in study.study_methods(config, setting)
    ]


def study_files(pattern, **values):
    """A pattern over the data sets, policies and settings of the study."""
    return expand(
        pattern,
        dataset=STUDY["datasets"],
        policy=STUDY["policies"],
        setting=STUDY["settings"],
        allow_missing=True,
        **values,
    )
