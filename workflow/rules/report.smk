rule write_report:
    input:
        template=f"{PACKAGE}/reporting/templates/report.html",
        captions=expand(f"{ROOT}/workflow/report/{{kind}}.rst", kind=CAPTIONED),
        tables=report_tables("csv"),
        pages=report_tables("md"),
        identifiability=of_datasets("results/tables/{dataset}/identifiability.md"),
        propensities=[
            file
            for name in MEASURED
            for file in of_datasets(f"results/tables/{{dataset}}/{name}.md")
        ],
        ledger=(
            of_datasets("results/tables/{dataset}/ledger.md")
            if LEDGER_SETTINGS
            else []
        ),
        metrics=[f"{table}.md" for table in METRIC_TABLES],
        figures=REPORT_FIGURES,
        claims="results/claims.csv",
        provenance="results/provenance.json",
        code=code("stages.report"),
    output:
        "results/report.html",
    log:
        "results/logs/report.log",
    threads: 1
    resources:
        mem_mb=1000,
    params:
        tables=REPORT_TABLES,
        claims=CLAIMS,
        sections=[
            ("identifiability", "What the click logs can tell"),
            *([("propensities", "Errors of the propensities")] if MEASURED else []),
            *([("ledger", "Gap ledger")] if LEDGER_SETTINGS else []),
            ("metrics", "All other tables"),
        ],
        benchmarks="results/benchmarks",
        headline=study.headline_metric(config),
        labels=LABELS,
    message:
        "Write the report"
    script:
        "../scripts/write_report.py"


rule report:
    input:
        rules.write_report.output,
