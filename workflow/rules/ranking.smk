rule train_ranker:
    input:
        dataset=dataset_files,
        candidates=per_seed(CANDIDATES),
        binned=per_seed(BINNED),
        truth=lambda wildcards: history(wildcards, wildcards.method, ["truth.csv"]),
        log=lambda wildcards: history(wildcards, wildcards.method, LOG_FILES),
        theta=theta_files,
        joint_model=joint_model,
        validation_theta=validation_theta,
        code=weights_code,
    output:
        model=per_seed(f"{RANKER}/ranker.txt"),
        report=per_seed(f"{RANKER}/ranker.json"),
        scores=per_seed(f"{RANKER}/test_scores.npz"),
    log:
        "results/logs/ranking/{dataset}/{policy}/{setting}/{method}.{round}.log",
    benchmark:
        "results/benchmarks/ranking/{dataset}/{policy}/{setting}/{method}.{round}.tsv"
    threads: 1
    resources:
        mem_mb=2000,
    params:
        method=lambda wildcards: {
            "target": "clicks",
            "weights": "ipw",
            "lists": "all",
            **{
                key: value
                for key, value in config["methods"][wildcards.method].items()
                if key in ("target", "weights", "lists")
            },
        },
        objective=lambda wildcards: config["rankers"][
            config["methods"][wildcards.method]["ranker"]
        ]["objective"],
        training={
            key: value
            for key, value in config["training"].items()
            if key != "validation_theta"
        },
        eps=lambda wildcards: config["settings"][wildcards.setting]["eps"],
        hidden_features=hidden_features,
        cutoff=study.stopping_cutoff(config),
        seeds=SEEDS,
    message:
        "Train the ranker of {wildcards.method}: {wildcards.dataset}, {wildcards.policy}, {wildcards.setting}, round {wildcards.round}"
    script:
        "../scripts/train_ranker.py"


rule ranking:
    input:
        [
            expand(
                f"{RANKER}/ranker.txt",
                dataset=STUDY["datasets"],
                policy=STUDY["policies"],
                setting=setting,
                seed=SEEDS,
                method=method,
                round=last,
            )
            for setting in STUDY["settings"]
            for method, last in final_rounds(setting)
        ],
    message:
        "Done: ranking"
