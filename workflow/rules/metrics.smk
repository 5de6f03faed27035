rule evaluate_from_clicks:
    input:
        dataset=dataset_files,
        candidates=per_seed(CANDIDATES),
        truth=per_seed(f"{ROUND}/truth.csv", track="initial", round=0),
        held_out=per_seed(
            f"{ROUND}/{{file}}", track="initial", round=0, file=HELD_OUT_FILES
        ),
        scores=lambda wildcards: score_files(wildcards, evaluated(wildcards.setting)),
        thetas=lambda wildcards: [
            at(
                f"{THETA}.csv",
                wildcards,
                seed=seed,
                track=track,
                round=last,
                estimator=estimator,
            )
            for _, track, last, estimator in weighting_thetas(wildcards.setting)
            for seed in SEEDS
        ],
        code=code("stages.counterfactual", "stages.exposure"),
    output:
        counterfactual=f"{EVALUATION}/counterfactual.csv",
        exposure=f"{EVALUATION}/exposure.csv",
    log:
        "results/logs/evaluation/{dataset}/{policy}/{setting}/from_clicks.log",
    benchmark:
        "results/benchmarks/evaluation/{dataset}/{policy}/{setting}/from_clicks.tsv"
    wildcard_constraints:
        setting=names(SIMULATED),
    threads: 1
    resources:
        mem_mb=4000,
    params:
        seeds=SEEDS,
        rankers=lambda wildcards: evaluated(wildcards.setting),
        last=lambda wildcards: last_rankers(wildcards.setting),
        thetas=lambda wildcards: [
            (method, seed)
            for method, *_ in weighting_thetas(wildcards.setting)
            for seed in SEEDS
        ],
        validation=VALIDATIONS[0],
        eps=lambda wildcards: (
            config["settings"][wildcards.setting]["eps"]
            if wildcards.setting in SIMULATED
            else None
        ),
        bootstraps=config["evaluation"]["bootstraps"],
    message:
        "Evaluate rankers from held-out clicks: {wildcards.dataset}, {wildcards.policy}, {wildcards.setting}"
    script:
        "../scripts/evaluate_from_clicks.py"


use rule evaluate_from_clicks as evaluate_from_own_clicks with:
    output:
        counterfactual=f"{EVALUATION}/counterfactual.csv",
    wildcard_constraints:
        setting=names(IMPORTED),


rule study_catalogue:
    input:
        code=code("stages.catalogue"),
    output:
        orders="results/evaluation/catalogue/orders.csv",
        exposure="results/evaluation/catalogue/exposure.csv",
    log:
        "results/logs/evaluation/catalogue.log",
    benchmark:
        "results/benchmarks/evaluation/catalogue.tsv"
    threads: 1
    resources:
        mem_mb=1000,
    params:
        size=config["catalogue"],
        examination=config["settings"][STUDY["settings"][0]]["examination"],
        seed=SEEDS[0],
    message:
        "Rank a synthetic catalogue of shared items"
    script:
        "../scripts/study_catalogue.py"


rule write_metrics_tables:
    input:
        rounds=study_files(f"{EVALUATION}/rounds.csv"),
        power=study_files(f"{EVALUATION}/power.csv"),
        counterfactual=[
            f"results/evaluation/{dataset}/{policy}/{setting}/counterfactual.csv"
            for dataset, policy, setting in CLICKED_STUDY
        ],
        exposure=[
            f"results/evaluation/{dataset}/{policy}/{setting}/exposure.csv"
            for dataset, policy, setting in SIMULATED_STUDY
        ],
        catalogue=rules.study_catalogue.output,
        code=code("stages.metrics_tables"),
    output:
        tables=expand(
            "{table}.{ending}", table=METRIC_TABLES, ending=["csv", "md", "tex"]
        ),
        figures=figure_files(*METRIC_FIGURES),
    log:
        "results/logs/evaluation/metrics_tables.log",
    threads: 1
    resources:
        mem_mb=2000,
    params:
        study=[
            tuple(where.split("/"))
            for where in study_files("{dataset}/{policy}/{setting}")
        ],
        simulated=SIMULATED_STUDY,
        clicked=CLICKED_STUDY,
        rankings=RANKINGS,
        groups={setting: blocks(setting) for setting in STUDY["settings"]},
        labels=LABELS,
        list_sizes={
            policy: study.list_size(config, policy) for policy in STUDY["policies"]
        },
        metrics=study.described_metrics(config),
        headline=study.headline_metric(config),
        order=[*config["methods"], *study.BASELINES],
    message:
        "Write the descriptive tables of all metrics"
    script:
        "../scripts/write_metrics_tables.py"


rule metrics:
    input:
        rules.write_metrics_tables.output,
    message:
        "Done: metrics"


rule export_qrels:
    input:
        dataset=dataset_files,
        code=code("stages.trec"),
    output:
        qrels=f"{TREC}/qrels.txt",
    log:
        "results/logs/trec/{dataset}.qrels.log",
    threads: 1
    resources:
        mem_mb=2000,
    message:
        "Export the grades of {wildcards.dataset} as TREC qrels"
    script:
        "../scripts/export_qrels.py"


rule export_runs:
    input:
        dataset=dataset_files,
        candidates=per_seed(CANDIDATES),
        scores=lambda wildcards: score_files(wildcards, last_rankers(wildcards.setting)),
        code=code("stages.trec"),
    output:
        runs=directory(f"{TREC}/{{policy}}.{{setting}}"),
    log:
        "results/logs/trec/{dataset}.{policy}.{setting}.log",
    threads: 1
    resources:
        mem_mb=2000,
    params:
        rankers=lambda wildcards: last_rankers(wildcards.setting),
        validations=VALIDATIONS,
        seeds=SEEDS,
    message:
        "Export TREC runs: {wildcards.dataset}, {wildcards.policy}, {wildcards.setting}"
    script:
        "../scripts/export_runs.py"


rule trec:
    input:
        expand(f"{TREC}/qrels.txt", dataset=STUDY["datasets"]),
        study_files(f"{TREC}/{{policy}}.{{setting}}"),
    message:
        "Done: trec"
