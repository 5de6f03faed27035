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
        sys.exit(
            f"ultrbench: {path}: the path of a file must not hold a brace; rename it"
        )


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


def kind_code(stage, registry, kind):
    """The source files of a stage and of a kind, which may be a function in one's own file."""
    file = own_file(kind)
    if file:
        return [file, *import_closure([f"ultrbench.{stage}", *imports(Path(file))])]
    sources = [registry[kind].partition(":")[0]] if kind in registry else []
    return import_closure([f"ultrbench.{stage}", *sources])


def click_model_code(wildcards):
    kind = config["settings"][wildcards.setting]["click_model"]["kind"]
    return kind_code("stages.clicks", CLICK_MODELS, kind)


def simulation(setting):
    """What of a setting the simulation of its clicks depends on."""
    apart = ("rounds", "training_rounds", "methods", "hidden_features")
    return {k: v for k, v in config["settings"][setting].items() if k not in apart}


def own_log(wildcards):
    folder = Path(config["settings"][wildcards.setting]["click_log"])
    return [
        str(f)
        for name in [*LOG_FILES, *HELD_OUT_FILES, "truth.csv"]
        if (f := folder / name).exists()
    ]


def hidden_features(wildcards):
    return config["settings"][wildcards.setting]["hidden_features"]


def more_rounds(wildcards):
    """Whether the ranker that an estimate weights clicks for displays a further round."""
    rounds = config["settings"][wildcards.setting]["rounds"]
    return int(wildcards.round) + 1 < rounds


def estimator_code(wildcards):
    kind = config["estimators"][wildcards.estimator]["kind"]
    return kind_code("stages.propensity", ESTIMATORS, kind)


def policy_code(wildcards):
    return kind_code(
        "stages.policies", {}, config["policies"][wildcards.policy]["kind"]
    )


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


def score_files(wildcards, rankers):
    """The test scores of some rankers, given as (method, round, seed)."""
    return [
        at(
            f"{RANKER}/test_scores.npz",
            wildcards,
            method=method,
            round=round_,
            seed=seed,
        )
        for method, round_, seed in rankers
    ]


def last_rankers(setting):
    """(method, round, seed) of the rankers of the last round."""
    return [
        (method, last, seed) for method, last in final_rounds(setting) for seed in SEEDS
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


def last_estimates(setting):
    """(method, propensities, seed) that the rankers of the last round learned from."""
    return [
        (method, path, seed)
        for method, last in final_rounds(setting)
        for path in theta_path(setting, method, last)
        for seed in SEEDS
    ]


def estimate_reports(wildcards):
    return [
        at(f"{path.removesuffix('.csv')}.json", wildcards, seed=seed)
        for _, path, seed in last_estimates(wildcards.setting)
    ]


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


def weighting_thetas(setting):
    """(method, track, round, estimator) of the propensities that clicks can be weighted by."""
    fixed = {}
    for method, last in final_rounds(setting):
        estimator = config["methods"][method].get("estimator")
        kind = config["estimators"][estimator]["kind"] if estimator else None
        if kind in ("naive", "oracle"):
            fixed.setdefault(kind, (method, track_of(method, last), last, estimator))
    return [*fixed.values(), *drawn_thetas(setting)]


SIMULATED_STUDY = [
    (dataset, policy, setting)
    for setting in STUDY["settings"]
    if setting in SIMULATED
    for dataset in STUDY["datasets"]
    for policy in STUDY["policies"]
]


def has_test_clicks(setting):
    """Whether there are clicks on test queries: a log of one's own may lack them."""
    folder = config["settings"][setting].get("click_log")
    return folder is None or (Path(folder) / HELD_OUT_FILES[1]).exists()


CLICKED_STUDY = [
    (dataset, policy, setting)
    for setting in STUDY["settings"]
    if has_test_clicks(setting)
    for dataset in STUDY["datasets"]
    for policy in STUDY["policies"]
]


def exposure_file(wildcards):
    """What the rankers of a setting expose: a simulation knows it, for displayed candidates."""
    known = wildcards.setting in SIMULATED and "truncated" in KINDS
    return at(f"{EVALUATION}/exposure.csv", wildcards) if known else []


RANKINGS = [(kind, VALIDATIONS[0]) for kind in KINDS]
METRIC_TABLES = [
    *study_files(
        PLAIN_TABLE,
        table=["power", *[f"{kind}.{way}.metrics" for kind, way in RANKINGS]],
    ),
    *[
        PLAIN_TABLE.format(dataset=dataset, policy=policy, setting=setting, table=table)
        for table, study_ in (
            ("counterfactual", CLICKED_STUDY),
            ("exposure", SIMULATED_STUDY),
        )
        for dataset, policy, setting in study_
    ],
    "results/tables/catalogue/sampled",
    "results/tables/catalogue/exposure",
]
METRIC_FIGURES = [
    *[
        f"results/figures/{dataset}/{name}.{setting}"
        for dataset, setting in dict.fromkeys((d, s) for d, _, s in SIMULATED_STUDY)
        for name in ("counterfactual", "exposure")
        if name == "counterfactual" or config["settings"][setting]["rounds"] > 1
    ],
    "results/figures/catalogue/sampled",
]


CLAIM_PARTS = claim_parts(CLAIMS, config)


def claimed_places():
    """(data set, policy, setting) of the rankers that the claims are about."""
    return list(
        dict.fromkeys(
            (part.dataset, part.policy, part.setting)
            for part in CLAIM_PARTS
            if not part.absent and CLAIMS[part.claim]["measure"] not in THETA_MEASURES
        )
    )


def claimed_thetas():
    """(data set, policy, setting, method) of the propensities that the claims are about."""
    return list(
        dict.fromkeys(
            (part.dataset, part.policy, part.setting, method)
            for part in CLAIM_PARTS
            if not part.absent and CLAIMS[part.claim]["measure"] in THETA_MEASURES
            for method in (part.method, part.against)
            if method
        )
    )


def claimed_theta_files(pattern):
    """A file of each of those propensities and seeds, seeds varying fastest."""
    return [
        pattern.format(
            dataset=dataset,
            policy=policy,
            setting=setting,
            seed=seed,
            track=track_of(method, study.final_round(config, setting, method)),
            round=study.final_round(config, setting, method),
            estimator=config["methods"][method]["estimator"],
        )
        for dataset, policy, setting, method in claimed_thetas()
        for seed in SEEDS
    ]


def claimed_rankers():
    """Reports of the propensities behind the rankers that the claims are about, seeds in order.

    By (data set, policy, setting, method).
    """
    reports = {}
    for part in CLAIM_PARTS:
        if part.absent or CLAIMS[part.claim]["measure"] in THETA_MEASURES:
            continue
        for method, path, seed in last_estimates(part.setting):
            if method in (part.method, part.against):
                key = (part.dataset, part.policy, part.setting, method)
                file = f"{path.removesuffix('.csv')}.json".format(
                    dataset=part.dataset, policy=part.policy, seed=seed
                )
                reports.setdefault(key, {})[file] = None
    return {key: list(files) for key, files in reports.items()}


CLAIMED_RANKERS = claimed_rankers()
GRIDS = variations.configurations(config) if variations.TUNING in config else {}

# (configuration, policy, seed) of everything that tuning compares.
TRIALS = [
    (name, policy, seed)
    for found in GRIDS.values()
    for name in found
    for policy in STUDY["policies"]
    for seed in SEEDS
]


def theta_of(setting, method):
    """Track, round and estimator of the propensities that a method ends with."""
    last = study.final_round(config, setting, method)
    estimator = config["methods"][method].get("estimator")
    return {"track": track_of(method, last), "round": last, "estimator": estimator}


def trial_files(wildcards, pattern):
    return [
        at(
            pattern,
            wildcards,
            policy=policy,
            setting=variations.TUNING,
            seed=seed,
            method=name,
            **theta_of(variations.TUNING, name),
        )
        for name, policy, seed in TRIALS
    ]


def benchmark_of(dataset, policy, setting, method):
    """Where Snakemake writes what an estimator cost."""
    return ESTIMATION_BENCHMARK.format(
        dataset=dataset, policy=policy, setting=setting, **theta_of(setting, method)
    )


def trial_benchmarks(wildcards):
    return [
        (name, policy, benchmark_of(wildcards.dataset, policy, variations.TUNING, name))
        for name, policy in dict.fromkeys(trial[:2] for trial in TRIALS)
    ]


def axis_name(sweep):
    about = config["sweeps"][sweep]
    return about.get("label", about["key"])


def estimated_methods(setting):
    """The methods of a setting that have an estimator, in the order of the table's rows."""
    return [
        method
        for method in study.study_methods(config, setting)
        if "estimator" in config["methods"][method]
    ]


def swept(sweep):
    """(point, method, seed) of the estimates along a sweep."""
    return [
        (point, method, seed)
        for point in variations.sweep_points(config, sweep)
        for method in estimated_methods(point.setting)
        for seed in SEEDS
    ]


def swept_files(wildcards, pattern):
    return [
        at(
            pattern,
            wildcards,
            policy=point.policy,
            setting=point.setting,
            seed=seed,
            **theta_of(point.setting, method),
        )
        for point, method, seed in swept(wildcards.sweep)
    ]


def swept_candidates(sweep):
    """Points of different policies have different candidates: all documents compare."""
    return "full" if config["sweeps"][sweep]["section"] == "policies" else KINDS[0]


def swept_benchmarks(wildcards):
    """Method, policy, setting and benchmark of everything that the sweeps estimate, each once."""
    entries = {
        (method, point.policy, point.setting): None
        for sweep in config["sweeps"]
        for point, method, _ in swept(sweep)
    }
    return [
        (*entry, benchmark_of(wildcards.dataset, entry[1], entry[2], entry[0]))
        for entry in entries
    ]


# Estimators to judge: all that learn theta from clicks, or a ranker that stands for it.
CARDS = [
    method
    for method, entry in config["methods"].items()
    if any(
        method in estimated_methods(point.setting)
        for sweep in config["sweeps"]
        for point in variations.sweep_points(config, sweep)
    )
    and config["estimators"][entry["estimator"]]["kind"] not in ("naive", "oracle")
]
