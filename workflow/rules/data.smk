rule fetch_dataset:
    output:
        # Not removed before the job: another project may have put it there meanwhile.
        update(f"{config['downloads']}/{{archive}}"),
    log:
        "results/logs/data/fetch.{archive}.log",
    wildcard_constraints:
        archive=names(map(re.escape, FETCHED)),
    threads: 1
    resources:
        mem_mb=1000,
    params:
        dataset=lambda wildcards: FETCHED[wildcards.archive],
        entry=lambda wildcards: REGISTRY[FETCHED[wildcards.archive]],
        downloads=lambda wildcards, output: str(Path(output[0]).parent),
    message:
        "Download {wildcards.archive}"
    script:
        "../scripts/fetch_dataset.py"


rule prepare_dataset:
    input:
        source=dataset_source,
        code=code("stages.data"),
    output:
        report=f"{DATA}/dataset.json",
        splits=expand(f"{DATA}/{{file}}", file=SPLIT_FILES, allow_missing=True),
    log:
        "results/logs/data/{dataset}.log",
    benchmark:
        "results/benchmarks/data/{dataset}.tsv"
    threads: 1
    resources:
        mem_mb=4000,
    params:
        entry=lambda wildcards: REGISTRY[wildcards.dataset],
        downloads=config["downloads"],
    message:
        "Prepare the data set {wildcards.dataset}"
    script:
        "../scripts/prepare_dataset.py"


rule data:
    input:
        expand(f"{DATA}/dataset.json", dataset=STUDY["datasets"]),
    message:
        "Done: data"
