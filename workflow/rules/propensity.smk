rule estimate_propensity:
    input:
        dataset=dataset_files,
        truth=lambda wildcards: history(wildcards, wildcards.track, ["truth.csv"]),
        log=lambda wildcards: history(wildcards, wildcards.track, LOG_FILES[:2]),
        code=estimator_code,
    output:
        table=per_seed(f"{THETA}.csv"),
        report=per_seed(f"{THETA}.json"),
    log:
        "results/logs/propensity/{dataset}/{policy}/{setting}/{track}.{round}.{estimator}.log",
    benchmark:
        "results/benchmarks/propensity/{dataset}/{policy}/{setting}/{track}.{round}.{estimator}.tsv"
    threads: 1
    resources:
        mem_mb=2000,
    params:
        estimator=lambda wildcards: config["estimators"][wildcards.estimator],
        seeds=SEEDS,
    script:
        "../scripts/estimate_propensity.py"


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
