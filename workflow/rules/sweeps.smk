rule summarise_sweep:
    input:
        scores=lambda wildcards: [
            at(
                f"{EVALUATION}/rounds.csv",
                wildcards,
                policy=p.policy,
                setting=p.setting,
            )
            for p in variations.sweep_points(config, wildcards.sweep)
        ],
        thetas=lambda wildcards: swept_files(wildcards, f"{THETA}.csv"),
        reports=lambda wildcards: swept_files(wildcards, f"{THETA}.json"),
        truths=lambda wildcards: swept_files(wildcards, f"{ROUND}/truth.csv"),
        code=code("stages.sweeps"),
    output:
        table=f"{SWEEP}.csv",
        drawn=expand(f"{SWEEP}.{{ending}}", ending=FIGURE_FILES, allow_missing=True),
    log:
        "results/logs/sweeps/{dataset}/{sweep}.log",
    threads: 1
    resources:
        mem_mb=1000,
    params:
        points=lambda wildcards: [
            point[:2] for point in variations.sweep_points(config, wildcards.sweep)
        ],
        thetas=lambda wildcards: [
            (point.panel, point.value, method, seed)
            for point, method, seed in swept(wildcards.sweep)
        ],
        label=lambda wildcards: axis_name(wildcards.sweep),
        candidates=lambda wildcards: swept_candidates(wildcards.sweep),
        validation=VALIDATIONS[0],
        metric=study.headline_metric(config),
        order=[*config["methods"], *study.BASELINES],
        labels=LABELS,
    message:
        "Summarise the sweep {wildcards.sweep} on {wildcards.dataset}"
    script:
        "../scripts/summarise_sweep.py"


rule write_cards:
    input:
        tables=expand(f"{SWEEP}.csv", sweep=config["sweeps"], allow_missing=True),
        code=code("stages.sweeps", "stages.runtime"),
    output:
        cards=expand(
            "results/cards/{{dataset}}/{method}.{ending}",
            method=CARDS,
            ending=["tex", "pdf"],
        ),
        runtime="results/sweeps/{dataset}/runtime.csv",
    log:
        "results/logs/sweeps/{dataset}.log",
    threads: 1
    resources:
        mem_mb=1000,
    params:
        methods=CARDS,
        axes=[axis_name(sweep) for sweep in config["sweeps"]],
        estimators={
            method: config["estimators"][config["methods"][method]["estimator"]]
            for method in CARDS
        },
        reference=STUDY["reference"],
        trees=config["training"]["trees"],
        benchmarks=swept_benchmarks,
        labels=LABELS,
        seeds=SEEDS,
    message:
        "Write the cards of {wildcards.dataset}"
    script:
        "../scripts/write_cards.py"


rule sweeps:
    input:
        expand(
            [*rules.summarise_sweep.output, *rules.write_cards.output],
            dataset=STUDY["datasets"] if config["sweeps"] else [],
            sweep=config["sweeps"],
        ),
    message:
        "Done: sweeps"
