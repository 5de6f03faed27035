rule write_tables:
    input:
        dataset=dataset_files,
        comparisons=f"{EVALUATION}/comparisons.csv",
        conventions=f"{EVALUATION}/conventions.csv",
        exposure=exposure_file,
        reports=estimate_reports,
        code=code("stages.paper"),
    output:
        tables=[
            (
                report(
                    f"{table}.csv",
                    caption="../report/results.rst",
                    category="Tables",
                    labels={"data set": "{dataset}", "table": Path(table).name},
                )
                if ending == "csv"
                else f"{table}.{ending}"
            )
            for table in expand(
                TABLE, candidates=KINDS, validation=VALIDATIONS, allow_missing=True
            )
            for ending in ("csv", "md", "tex")
        ],
    log:
        "results/logs/paper/{dataset}/{policy}.{setting}.tables.log",
    threads: 1
    resources:
        mem_mb=1000,
    params:
        tables=[(kind, validation) for kind in KINDS for validation in VALIDATIONS],
        estimated=lambda wildcards: [
            method for method, *_ in last_estimates(wildcards.setting)
        ],
        groups=lambda wildcards: blocks(wildcards.setting),
        labels=LABELS,
        metrics=study.metric_names(config),
        headline=study.headline_metric(config),
        control=lambda wildcards: next(iter(controls(wildcards.setting)), None),
        without_relevant=config["evaluation"]["queries_without_relevant"],
        list_size=lambda wildcards: study.list_size(config, wildcards.policy),
        one_log=lambda wildcards: wildcards.setting in IMPORTED,
    message:
        "Write the tables of {wildcards.dataset}, {wildcards.policy}, {wildcards.setting}"
    script:
        "../scripts/write_tables.py"


rule draw_figures:
    input:
        dataset=dataset_files,
        thetas=lambda wildcards: theta_index_files(wildcards, f"{THETA}.csv"),
        truths=lambda wildcards: theta_index_files(wildcards, f"{ROUND}/truth.csv"),
        logs=expand(
            f"{ROUND}/{{file}}",
            policy=STUDY["policies"],
            seed=SEEDS,
            setting=STUDY["settings"][0],
            track="initial",
            round=0,
            file=LOG_FILES[:2],
            allow_missing=True,
        ),
        rounds=expand(
            f"{EVALUATION}/rounds.csv",
            setting=STUDY["settings"],
            policy=STUDY["policies"],
            allow_missing=True,
        ),
        code=code("stages.paper"),
    output:
        figures=figure_files(*expand(FIGURE, name=FIGURES, allow_missing=True)),
    log:
        "results/logs/paper/{dataset}/figures.log",
    benchmark:
        "results/benchmarks/paper/{dataset}/figures.tsv"
    threads: 1
    resources:
        mem_mb=2000,
    params:
        thetas=theta_index(),
        policies=STUDY["policies"],
        settings=STUDY["settings"],
        seeds=SEEDS,
        candidates=KINDS[0],
        validation=VALIDATIONS[0],
        headline=study.headline_metric(config),
        order=[*config["methods"], *study.BASELINES],
        labels=LABELS,
    message:
        "Draw the figures of {wildcards.dataset}"
    script:
        "../scripts/draw_figures.py"


rule write_summary:
    input:
        tables=[
            *study_files(f"{TABLE}.md", candidates=KINDS, validation=VALIDATIONS),
            *expand("{table}.md", table=METRIC_TABLES),
            *expand(
                "results/tables/{dataset}/{name}.md",
                dataset=STUDY["datasets"],
                name=["identifiability", *MEASURED],
            ),
        ],
        figures=[
            *expand(
                f"{FIGURE}.png",
                dataset=STUDY["datasets"],
                name=[*FIGURES, *MEASURED],
            ),
            *expand("{figure}.png", figure=METRIC_FIGURES),
        ],
        first=study_files(
            f"{TABLE}.csv", candidates=KINDS[0], validation=VALIDATIONS[0]
        ),
        comparisons=study_files(f"{EVALUATION}/comparisons.csv"),
        datasets=expand(f"{DATA}/dataset.json", dataset=STUDY["datasets"]),
        code=code("stages.paper"),
    output:
        report(
            "results/summary.md",
            caption="../report/summary.rst",
            category="Summary",
        ),
    log:
        "results/logs/paper/summary.log",
    threads: 1
    resources:
        mem_mb=1000,
    params:
        comparisons=study_files("{dataset}/{policy}/{setting}"),
        headline=study.headline_metric(config),
        labels=LABELS,
    message:
        "Write the summary"
    script:
        "../scripts/write_summary.py"


rule write_provenance:
    input:
        summary=rules.write_summary.output,
        datasets=expand(f"{DATA}/dataset.json", dataset=STUDY["datasets"]),
        code=code("stages.provenance", "stages.runtime"),
    output:
        provenance="results/provenance.json",
        runtime="results/runtime.csv",
        disk_use="results/disk_use.md",
    log:
        "results/logs/paper/provenance.log",
    threads: 1
    resources:
        mem_mb=500,
    params:
        config=config,
        datasets=STUDY["datasets"],
        benchmarks="results/benchmarks",
        downloads=config["downloads"],
        source=workflow.basedir,
    message:
        "Note versions, commit, checksums, runtime and disk use"
    script:
        "../scripts/write_provenance.py"


rule paper:
    input:
        rules.write_summary.output,
        rules.write_provenance.output,
        study_files([*rules.write_tables.output]),
        rules.write_metrics_tables.output,
        expand(
            [
                *rules.draw_figures.output,
                *rules.report_identifiability.output,
                *(rules.measure_propensities.output if MEASURED else []),
            ],
            dataset=STUDY["datasets"],
        ),
    message:
        "Done: paper"
