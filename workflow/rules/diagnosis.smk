rule measure_propensities:
    input:
        tables=lambda wildcards: measured_files(wildcards, "csv"),
        reports=lambda wildcards: measured_files(wildcards, "json"),
        truths=lambda wildcards: files_of_rounds(
            wildcards, measured_index(), ["truth.csv"]
        ),
        logs=lambda wildcards: files_of_rounds(
            wildcards, measured_index(), LOG_FILES[:2]
        ),
        code=code("stages.diagnosis"),
    output:
        tables=expand(
            "results/tables/{{dataset}}/propensity_error.{ending}",
            ending=["csv", "md", "tex"],
        ),
        figure=figure_files(FIGURE.replace("{name}", "propensity_error")),
    log:
        "results/logs/diagnosis/{dataset}/propensity_error.log",
    benchmark:
        "results/benchmarks/diagnosis/{dataset}/propensity_error.tsv"
    threads: 1
    resources:
        mem_mb=2000,
    params:
        estimates=measured_index(),
        rounds=rounds_of(measured_index()),
        order=[*config["methods"], *study.BASELINES],
        labels=LABELS,
    message:
        "Measure the errors of the propensities of {wildcards.dataset}"
    script:
        "../scripts/measure_propensities.py"


rule report_identifiability:
    input:
        truths=lambda wildcards: files_of_rounds(wildcards, logs_index(), ["truth.csv"]),
        logs=lambda wildcards: files_of_rounds(wildcards, logs_index(), LOG_FILES[:2]),
        code=code("stages.diagnosis"),
    output:
        report="results/identifiability/{dataset}.json",
        tables=expand(
            "results/tables/{{dataset}}/identifiability.{ending}", ending=["csv", "md"]
        ),
    log:
        "results/logs/diagnosis/{dataset}/identifiability.log",
    benchmark:
        "results/benchmarks/diagnosis/{dataset}/identifiability.tsv"
    threads: 1
    resources:
        mem_mb=2000,
    params:
        logs=logs_index(),
        rounds=rounds_of(logs_index()),
    message:
        "Report what the click logs of {wildcards.dataset} can tell of propensities"
    script:
        "../scripts/report_identifiability.py"


rule identifiability:
    input:
        expand(rules.report_identifiability.output, dataset=STUDY["datasets"]),
    message:
        "Done: identifiability"
