rule evaluate_rankers:
    input:
        dataset=dataset_files,
        candidates=per_seed(CANDIDATES),
        scores=lambda wildcards: score_files(wildcards, evaluated(wildcards.setting)),
        code=code("stages.evaluation"),
    output:
        per_query=f"{EVALUATION}/per_query.parquet",
        rounds=f"{EVALUATION}/rounds.csv",
        conventions=f"{EVALUATION}/conventions.csv",
    log:
        "results/logs/evaluation/{dataset}/{policy}/{setting}/evaluate.log",
    benchmark:
        "results/benchmarks/evaluation/{dataset}/{policy}/{setting}/evaluate.tsv"
    threads: 1
    resources:
        mem_mb=4000,
    params:
        rankers=lambda wildcards: evaluated(wildcards.setting),
        kinds=config["evaluation"]["candidates"],
        metrics=study.measured_metrics(config),
        headline=study.headline_metric(config),
        without_relevant=config["evaluation"]["queries_without_relevant"],
        seeds=SEEDS,
    message:
        "Measure the rankers of {wildcards.dataset}, {wildcards.policy}, {wildcards.setting}"
    script:
        "../scripts/evaluate_rankers.py"


rule compare_rankers:
    input:
        per_query=f"{EVALUATION}/per_query.parquet",
        code=code("stages.evaluation"),
    output:
        comparisons=f"{EVALUATION}/comparisons.csv",
        power=f"{EVALUATION}/power.csv",
    log:
        "results/logs/evaluation/{dataset}/{policy}/{setting}/compare.log",
    benchmark:
        "results/benchmarks/evaluation/{dataset}/{policy}/{setting}/compare.tsv"
    threads: 1
    resources:
        mem_mb=4000,
    params:
        reference=STUDY["reference"],
        metrics=study.metric_names(config),
        headline=study.headline_metric(config),
        not_marked=lambda wildcards: controls(wildcards.setting),
        resamples=config["evaluation"]["resamples"],
        bootstraps=config["evaluation"]["bootstraps"],
    message:
        "Test the rankers of {wildcards.dataset}, {wildcards.policy}, {wildcards.setting}"
    script:
        "../scripts/compare_rankers.py"


rule evaluation:
    input:
        study_files(f"{EVALUATION}/comparisons.csv"),
    message:
        "Done: evaluation"
