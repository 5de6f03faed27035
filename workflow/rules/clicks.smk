rule simulate_clicks:
    input:
        dataset=dataset_files,
        candidates=per_seed(CANDIDATES),
        ranker=display_policy,
        code=click_model_code,
    output:
        truth=per_seed(f"{ROUND}/truth.csv"),
        log=click_log(per_seed(f"{ROUND}/{{file}}", file=LOG_FILES)),
    log:
        "results/logs/clicks/{dataset}/{policy}/{setting}/{track}.{round}.log",
    benchmark:
        "results/benchmarks/clicks/{dataset}/{policy}/{setting}/{track}.{round}.tsv"
    wildcard_constraints:
        setting=names(SIMULATED),
        track=names(["randomized", "replica", *config["methods"]]),
    threads: 1
    resources:
        mem_mb=2000,
    params:
        setting=lambda wildcards: simulation(wildcards.setting),
        log_name=log_of_track,
        splits=["train", "vali"],
        seeds=SEEDS,
    message:
        "Simulate clicks: {wildcards.dataset}, {wildcards.policy}, {wildcards.setting}, {wildcards.track}, round {wildcards.round}"
    script:
        "../scripts/simulate_clicks.py"


use rule simulate_clicks as simulate_initial_clicks with:
    output:
        truth=per_seed(f"{ROUND}/truth.csv"),
        log=click_log(per_seed(f"{ROUND}/{{file}}", file=LOG_FILES)),
        held_out=click_log(per_seed(f"{ROUND}/{{file}}", file=HELD_OUT_FILES)),
    wildcard_constraints:
        setting=names(SIMULATED),
        track="initial",
    params:
        setting=lambda wildcards: simulation(wildcards.setting),
        log_name=log_of_track,
        splits=["train", "vali", "test"],
        seeds=SEEDS,


rule import_clicks:
    input:
        dataset=dataset_files,
        source=own_log,
        code=code("stages.clicks"),
    output:
        truth=per_seed(f"{ROUND}/truth.csv"),
        log=per_seed(f"{ROUND}/{{file}}", file=LOG_FILES),
        held_out=per_seed(f"{ROUND}/{{file}}", file=HELD_OUT_FILES),
    log:
        "results/logs/clicks/{dataset}/{policy}/{setting}/{track}.{round}.log",
    wildcard_constraints:
        setting=names(IMPORTED),
    threads: 1
    resources:
        mem_mb=2000,
    params:
        folder=lambda wildcards: config["settings"][wildcards.setting]["click_log"],
        seeds=SEEDS,
    message:
        "Check the click log of {wildcards.setting}"
    script:
        "../scripts/import_clicks.py"


rule clicks:
    input:
        [
            file.format(setting=setting, track=track, round=0)
            for setting in STUDY["settings"]
            for track in sorted(
                {
                    study.method_log(config, method)
                    for method in study.study_methods(config, setting)
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
    message:
        "Done: clicks"
