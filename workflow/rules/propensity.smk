THETA = f"{ROUND}/theta/{{estimator}}"


def estimator_code(wildcards):
    kind = config["estimators"][wildcards.estimator]["kind"]
    module = ESTIMATORS[kind].partition(":")[0].removeprefix("ultrbench.")
    return code("stages.propensity", module)


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
    params:
        estimator=lambda wildcards: config["estimators"][wildcards.estimator],
        seeds=SEEDS,
    threads: 1
    resources:
        mem_mb=2000,
    script:
        "../scripts/estimate_propensity.py"


def theta_path(setting, method, round_):
    """The propensities that weight a method's clicks; a target on grades has none."""
    estimator = config["methods"][method].get("estimator")
    if estimator is None:
        return []
    return [f"{THETA}.csv".format(
        dataset="{dataset}", policy="{policy}", seed="{seed}", setting=setting,
        track=track_of(method, round_), round=round_, estimator=estimator,
    )]


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
