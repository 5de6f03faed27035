rule choose_parameters:
    input:
        rankers=lambda wildcards: trial_files(wildcards, f"{RANKER}/ranker.json"),
        thetas=lambda wildcards: trial_files(wildcards, f"{THETA}.csv"),
        reports=lambda wildcards: trial_files(wildcards, f"{THETA}.json"),
        truths=lambda wildcards: trial_files(wildcards, f"{ROUND}/truth.csv"),
        code=code("stages.tuning", "stages.runtime"),
    output:
        table="results/tuning/{dataset}/choice.csv",
        page="results/tuning/{dataset}/choice.md",
        runtime="results/tuning/{dataset}/runtime.csv",
    log:
        "results/logs/tuning/{dataset}.log",
    threads: 1
    resources:
        mem_mb=1000,
    params:
        trials=TRIALS,
        grids=GRIDS,
        benchmarks=trial_benchmarks,
        validation=VALIDATIONS[0],
        oracle_tuned=["dla"],
        labels=LABELS,
        seeds=SEEDS,
    message:
        "Choose parameters on {wildcards.dataset}"
    script:
        "../scripts/choose_parameters.py"


rule tuning:
    input:
        expand(
            rules.choose_parameters.output,
            dataset=STUDY["datasets"] if GRIDS else [],
        ),
    message:
        "Done: tuning"
