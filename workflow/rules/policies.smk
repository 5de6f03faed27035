rule train_policy:
    input:
        dataset=dataset_files,
        code=policy_code,
    output:
        candidates=per_seed(CANDIDATES),
        report=per_seed(CANDIDATES.replace(".npz", ".json")),
        binned=per_seed(BINNED),
    log:
        "results/logs/policies/{dataset}/{policy}.log",
    benchmark:
        "results/benchmarks/policies/{dataset}/{policy}.tsv"
    threads: 1
    resources:
        mem_mb=6000,
    params:
        policy=lambda wildcards: {
            key: value
            for key, value in config["policies"][wildcards.policy].items()
            if key not in ("policy_queries", "list_size")
        },
        policy_queries=lambda wildcards: study.policy_queries(config, wildcards.policy),
        list_size=lambda wildcards: study.list_size(config, wildcards.policy),
        seeds=SEEDS,
    message:
        "Train the logging policy {wildcards.policy} on {wildcards.dataset}"
    script:
        "../scripts/train_policy.py"


rule policies:
    input:
        expand(
            CANDIDATES,
            dataset=STUDY["datasets"],
            policy=STUDY["policies"],
            seed=SEEDS,
        ),
    message:
        "Done: policies"
