rule estimate_propensity:
    input:
        dataset=dataset_files,
        candidates=per_seed(CANDIDATES),
        binned=per_seed(BINNED),
        truth=lambda wildcards: history(wildcards, wildcards.track, ["truth.csv"]),
        log=lambda wildcards: history(wildcards, wildcards.track, LOG_FILES[:2]),
        code=estimator_code,
    output:
        table=per_seed(f"{THETA}.csv"),
        report=per_seed(f"{THETA}.json"),
    log:
        "results/logs/propensity/{dataset}/{policy}/{setting}/{track}.{round}.{estimator}.log",
    benchmark:
        ESTIMATION_BENCHMARK
    wildcard_constraints:
        estimator=names(study.estimators(config, joint=False)),
    threads: 1
    resources:
        mem_mb=2000,
    params:
        estimator=lambda wildcards: config["estimators"][wildcards.estimator],
        hidden_features=hidden_features,
        more_rounds=more_rounds,
        seeds=SEEDS,
    message:
        "Estimate propensities: {wildcards.estimator} on {wildcards.dataset}, {wildcards.policy}, {wildcards.setting}, {wildcards.track}, round {wildcards.round}"
    script:
        "../scripts/estimate_propensity.py"


use rule estimate_propensity as estimate_jointly with:
    output:
        table=per_seed(f"{THETA}.csv"),
        report=per_seed(f"{THETA}.json"),
        model=per_seed(f"{THETA}.txt"),
    wildcard_constraints:
        estimator=names(study.estimators(config, joint=True)),
    priority: 1  # the longest of all jobs may be among them
    resources:
        mem_mb=8000,  # lightgbm_position holds a row for each document of each distinct session
    params:
        estimator=lambda wildcards: config["estimators"][wildcards.estimator],
        hidden_features=hidden_features,
        more_rounds=more_rounds,
        training={key: config["training"][key] for key in study.SIZE},
        seeds=SEEDS,


rule propensity:
    input:
        [
            expand(
                path, dataset=STUDY["datasets"], policy=STUDY["policies"], seed=SEEDS
            )
            for setting in STUDY["settings"]
            for method, last in final_rounds(setting)
            for path in theta_path(setting, method, last)
        ],
    message:
        "Done: propensity"
