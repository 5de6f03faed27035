def evaluated(setting):
    """(method, round, seed) of every ranker of a setting, in the order of the score files."""
    return [
        (method, round_, seed)
        for method, last in final_rounds(setting)
        for round_ in range(last + 1)
        for seed in SEEDS
    ]


rule evaluate_rankers:
    input:
        dataset=dataset_files,
        candidates=per_seed(CANDIDATES),
        scores=lambda wildcards: [
            f"{RANKER}/test_scores.npz".format(
                **wildcards, method=method, round=round_, seed=seed
            )
            for method, round_, seed in evaluated(wildcards.setting)
        ],
        code=code("stages.evaluation"),
    output:
        per_query=f"{EVALUATION}/per_query.parquet",
        rounds=f"{EVALUATION}/rounds.csv",
        conventions=f"{EVALUATION}/conventions.csv",
    log:
        "results/logs/evaluation/{dataset}/{policy}/{setting}/evaluate.log",
    benchmark:
        "results/benchmarks/evaluation/{dataset}/{policy}/{setting}/evaluate.tsv"
    params:
        rankers=lambda wildcards: evaluated(wildcards.setting),
        kinds=config["evaluation"]["candidates"],
        metrics=configuration.metric_names(config),
        headline=configuration.headline_metric(config),
        without_relevant=config["evaluation"]["queries_without_relevant"],
        seeds=SEEDS,
    threads: 1
    resources:
        mem_mb=4000,
    script:
        "../scripts/evaluate_rankers.py"


rule compare_rankers:
    input:
        per_query=f"{EVALUATION}/per_query.parquet",
        code=code("stages.evaluation"),
    output:
        comparisons=f"{EVALUATION}/comparisons.csv",
    log:
        "results/logs/evaluation/{dataset}/{policy}/{setting}/compare.log",
    benchmark:
        "results/benchmarks/evaluation/{dataset}/{policy}/{setting}/compare.tsv"
    params:
        reference=STUDY["reference"],
        metrics=configuration.metric_names(config),
        headline=configuration.headline_metric(config),
        not_marked=lambda wildcards: [
            method
            for method in configuration.study_methods(config, wildcards.setting)
            if configuration.method_log(config, method) == "replica"
        ],
        resamples=config["evaluation"]["resamples"],
        bootstraps=config["evaluation"]["bootstraps"],
    threads: 1
    resources:
        mem_mb=4000,
    script:
        "../scripts/compare_rankers.py"


rule evaluation:
    input:
        study_files(f"{EVALUATION}/comparisons.csv"),
