"""Which files and values each rule takes."""


def is_fetched(name):
    """Whether a data set must be downloaded. What is there is never made again: it is a source."""
    entry = REGISTRY[name]
    return bool(entry.get("urls")) and find_source(entry, config["downloads"]) is None


FETCHED = {
    REGISTRY[name]["path"][0]: name for name in STUDY["datasets"] if is_fetched(name)
}


def source_files(name):
    """The archive of a data set or the files of its folder; nothing for a generated one."""
    entry = REGISTRY[name]
    if entry["kind"] == "synthetic":
        return []
    if is_fetched(name):
        return [f"{config['downloads']}/{entry['path'][0]}"]
    source = find_source(entry, config["downloads"])
    if source is None or source.is_file():
        return [str(source)] if source else []
    return sorted(str(file) for file in source.rglob("*") if file.is_file())


# Snakemake takes {word} in a path for a wildcard, and there is no way to quote it.
for path in [
    PACKAGE,
    config["downloads"],
    *[file for name in STUDY["datasets"] for file in source_files(name)],
    *[config["settings"][name].get("click_log", "") for name in STUDY["settings"]],
]:
    if "{" in str(path):
        sys.exit(f"ultrbench: {path}: the path of a file must not hold a brace; rename it")


def dataset_source(wildcards):
    return source_files(wildcards.dataset)


def display_policy(wildcards):
    """The ranker of the round before; round 0 is shown by the initial policy."""
    if int(wildcards.round) == 0:
        return []
    return [
        at(
            f"{RANKER}/{file}",
            wildcards,
            method=wildcards.track,
            round=int(wildcards.round) - 1,
            seed=seed,
        )
        for seed in SEEDS
        for file in ("ranker.txt", "ranker.json")
    ]


def log_of_track(wildcards):
    if wildcards.track in study.LOGS:
        return wildcards.track
    return study.method_log(config, wildcards.track)


def click_model_code(wildcards):
    kind = config["settings"][wildcards.setting]["click_model"]["kind"]
    source = CLICK_MODELS[kind].partition(":")[0].removeprefix("ultrbench.")
    return code("stages.clicks", source)


def own_log(wildcards):
    folder = Path(config["settings"][wildcards.setting]["click_log"])
    return [
        str(f) for name in [*LOG_FILES, "truth.csv"] if (f := folder / name).exists()
    ]


def estimator_code(wildcards):
    kind = config["estimators"][wildcards.estimator]["kind"]
    source = ESTIMATORS[kind].partition(":")[0].removeprefix("ultrbench.")
    return code("stages.propensity", source)


def theta_path(setting, method, round_):
    """The propensities that weight a method's clicks; a target on grades has none."""
    estimator = config["methods"][method].get("estimator")
    if estimator is None:
        return []
    return expand(
        f"{THETA}.csv",
        setting=setting,
        track=track_of(method, round_),
        round=round_,
        estimator=estimator,
        allow_missing=True,
    )


def theta_files(wildcards):
    return [
        at(path, wildcards, seed=seed)
        for path in theta_path(
            wildcards.setting, wildcards.method, int(wildcards.round)
        )
        for seed in SEEDS
    ]


def joint_model(wildcards):
    """The ranker that a joint estimator wrote beside its propensities."""
    ranker = config["methods"][wildcards.method]["ranker"]
    if config["rankers"][ranker]["objective"] != "joint":
        return []
    return [file.removesuffix(".csv") + ".txt" for file in theta_files(wildcards)]


def weights_code(wildcards):
    kind = config["methods"][wildcards.method].get("weights", "ipw")
    source = WEIGHTS[kind][0].partition(":")[0].removeprefix("ultrbench.")
    return code("stages.ranking", source)


def validation_theta(wildcards):
    """One theta weights the validation clicks of all methods; by default the simulator's own."""
    estimator = config["training"]["validation_theta"]
    if estimator == "truth" or "clicks" not in config["training"]["validation"]:
        return []
    track = track_of(wildcards.method, int(wildcards.round))
    return [
        at(f"{THETA}.csv", wildcards, track=track, seed=seed, estimator=estimator)
        for seed in SEEDS
    ]


def evaluated(setting):
    """(method, round, seed) of every ranker of a setting, in the order of the score files."""
    return [
        (method, round_, seed)
        for method, last in final_rounds(setting)
        for round_ in range(last + 1)
        for seed in SEEDS
    ]


def blocks(setting):
    """The rows of a table: what learns from clicks alone, skylines, and what they stand against."""
    rows = {
        "Learned from clicks": [],
        "Skylines": [],
        "Baselines and control": list(study.BASELINES),
    }
    for method in study.study_methods(config, setting):
        estimator = config["methods"][method].get("estimator")
        if study.method_log(config, method) == "replica":
            rows["Baselines and control"].append(method)
        elif estimator is None or config["estimators"][estimator]["kind"] == "oracle":
            rows["Skylines"].append(method)
        else:
            rows["Learned from clicks"].append(method)
    return {block: methods for block, methods in rows.items() if methods}


def controls(setting):
    """The A/A rows of a setting: a method on another click log."""
    return [
        method
        for method in study.study_methods(config, setting)
        if study.method_log(config, method) == "replica"
    ]


def drawn_thetas(setting):
    """(method, track, round, estimator) of the propensities that a setting learns, each once."""
    thetas = {}
    for method, last in final_rounds(setting):
        estimator = config["methods"][method].get("estimator")
        kind = config["estimators"][estimator]["kind"] if estimator else None
        if kind not in (None, "naive", "oracle", *study.WITHOUT_THETA):
            thetas.setdefault((track_of(method, last), last, estimator), method)
    return [(method, *key) for key, method in thetas.items()]


def figure_names(setting):
    """The figures of a setting by what they show."""
    shown = {"propensity": bool(drawn_thetas(setting)), "spread": True}
    shown["rounds"] = config["settings"][setting]["rounds"] > 1
    return [f"{name}.{setting}" for name, wanted in shown.items() if wanted]


FIGURES = [
    "grades",
    *[name for setting in STUDY["settings"] for name in figure_names(setting)],
]


def theta_index():
    """(policy, setting, method, seed, track, round, estimator) of the propensity figures."""
    return [
        (policy, setting, method, seed, track, last, estimator)
        for setting in STUDY["settings"]
        for method, track, last, estimator in drawn_thetas(setting)
        for policy in STUDY["policies"]
        for seed in SEEDS
    ]


def theta_index_files(wildcards, pattern):
    return [
        at(
            pattern,
            wildcards,
            policy=policy,
            setting=setting,
            seed=seed,
            track=track,
            round=last,
            estimator=estimator,
        )
        for policy, setting, _, seed, track, last, estimator in theta_index()
    ]
