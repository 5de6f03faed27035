def display_policy(wildcards):
    """The ranker of the round before; round 0 is shown by the initial policy."""
    if int(wildcards.round) == 0:
        return []
    return [
        f"{RANKER.format(**dict(wildcards) | {'round': int(wildcards.round) - 1}, method=wildcards.track, seed=seed)}/{file}"
        for seed in SEEDS
        for file in ("ranker.txt", "ranker.json")
    ]


def log_of_track(wildcards):
    if wildcards.track in LOGS:
        return wildcards.track
    return configuration.method_log(config, wildcards.track)


rule simulate_clicks:
    input:
        dataset=dataset_files,
        candidates=per_seed(CANDIDATES),
        ranker=display_policy,
        code=code("stages.clicks"),
    output:
        truth=per_seed(f"{ROUND}/truth.csv"),
        log=per_seed(f"{ROUND}/{{file}}", file=LOG_FILES),
    log:
        "results/logs/clicks/{dataset}/{policy}/{setting}/{track}.{round}.log",
    benchmark:
        "results/benchmarks/clicks/{dataset}/{policy}/{setting}/{track}.{round}.tsv"
    wildcard_constraints:
        setting=names(SIMULATED),
    params:
        setting=lambda wildcards: {
            key: config["settings"][wildcards.setting][key]
            for key in ["sessions", *configuration.SIMULATION_KEYS]
        },
        log_name=log_of_track,
        seeds=SEEDS,
    threads: 1
    resources:
        mem_mb=2000,
    script:
        "../scripts/simulate_clicks.py"


def own_log(wildcards):
    folder = Path(config["settings"][wildcards.setting]["click_log"])
    return [str(f) for name in [*LOG_FILES, "truth.csv"] if (f := folder / name).exists()]


rule import_clicks:
    input:
        dataset=dataset_files,
        source=own_log,
        code=code("stages.clicks"),
    output:
        truth=per_seed(f"{ROUND}/truth.csv"),
        log=per_seed(f"{ROUND}/{{file}}", file=LOG_FILES),
    log:
        "results/logs/clicks/{dataset}/{policy}/{setting}/{track}.{round}.log",
    wildcard_constraints:
        setting=names(IMPORTED),
    params:
        folder=lambda wildcards: config["settings"][wildcards.setting]["click_log"],
        seeds=SEEDS,
    threads: 1
    resources:
        mem_mb=2000,
    script:
        "../scripts/import_clicks.py"


rule clicks:
    input:
        [
            file.format(setting=setting, track=track, round=0)
            for setting in STUDY["settings"]
            for track in sorted(
                {
                    configuration.method_log(config, method)
                    for method in configuration.study_methods(config, setting)
                }
            )
            for file in expand(
                f"{ROUND}/truth.csv",
                dataset=STUDY["datasets"],
                policy=STUDY["policies"],
                seed=SEEDS,
                allow_missing=True,
            )
        ],
