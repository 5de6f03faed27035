use rule train_ranker as train_on_expected_clicks with:
    output:
        model=per_seed(f"{RANKER}/expected/ranker.txt"),
        report=per_seed(f"{RANKER}/expected/ranker.json"),
        scores=per_seed(f"{RANKER}/expected/test_scores.npz"),
    log:
        "results/logs/ranking/{dataset}/{policy}/{setting}/{method}.{round}.expected.log",
    benchmark:
        "results/benchmarks/ranking/{dataset}/{policy}/{setting}/{method}.{round}.expected.tsv"
    params:
        method=lambda wildcards: {
            "target": "expected_clicks",
            "lists": config["methods"][wildcards.method]["lists"],
        },
    message:
        "Train the ranker of {wildcards.method} on expected clicks: {wildcards.dataset}, {wildcards.policy}, {wildcards.setting}, round {wildcards.round}"


use rule evaluate_rankers as evaluate_on_expected_clicks with:
    input:
        dataset=dataset_files,
        candidates=per_seed(CANDIDATES),
        scores=lambda wildcards: [
            at(
                f"{RANKER}/expected/test_scores.npz",
                wildcards,
                method=method,
                round=round_,
                seed=seed,
            )
            for method, round_, seed in ledger_rankers(wildcards.setting)
        ],
        code=code("stages.evaluation"),
    output:
        per_query=f"{EVALUATION}/expected/per_query.parquet",
        rounds=f"{EVALUATION}/expected/rounds.csv",
        conventions=f"{EVALUATION}/expected/conventions.csv",
    log:
        "results/logs/evaluation/{dataset}/{policy}/{setting}/expected.log",
    benchmark:
        "results/benchmarks/evaluation/{dataset}/{policy}/{setting}/expected.tsv"
    params:
        rankers=lambda wildcards: ledger_rankers(wildcards.setting),
    message:
        "Measure the rankers on expected clicks of {wildcards.dataset}, {wildcards.policy}, {wildcards.setting}"


rule write_ledger:
    input:
        evaluated=expand(
            f"{EVALUATION}/per_query.parquet",
            policy=STUDY["policies"],
            setting=LEDGER_SETTINGS,
            allow_missing=True,
        ),
        expected=expand(
            f"{EVALUATION}/expected/per_query.parquet",
            policy=STUDY["policies"],
            setting=LEDGER_SETTINGS,
            allow_missing=True,
        ),
        code=code("stages.ledger"),
    output:
        tables=expand(
            "results/tables/{{dataset}}/ledger.{ending}", ending=["csv", "md", "tex"]
        ),
        figure=figure_files(FIGURE.replace("{name}", "ledger")),
    log:
        "results/logs/evaluation/{dataset}/ledger.log",
    benchmark:
        "results/benchmarks/evaluation/{dataset}/ledger.tsv"
    threads: 1
    resources:
        mem_mb=2000,
    params:
        policies=STUDY["policies"],
        rows={setting: ledger_rows(setting) for setting in LEDGER_SETTINGS},
        metric=study.headline_metric(config),
        bootstraps=config["evaluation"]["bootstraps"],
        order=[*config["methods"], *study.BASELINES],
        labels=LABELS,
    message:
        "Write the gap ledger of {wildcards.dataset}"
    script:
        "../scripts/write_ledger.py"


rule ledger:
    input:
        expand(rules.write_ledger.output, dataset=STUDY["datasets"]),
    message:
        "Done: ledger"
