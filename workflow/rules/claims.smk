rule judge_claims:
    input:
        datasets=expand(f"{DATA}/dataset.json", dataset=STUDY["datasets"]),
        per_query=[
            f"{EVALUATION}/per_query.parquet".format(
                dataset=dataset, policy=policy, setting=setting
            )
            for dataset, policy, setting in claimed_places()
        ],
        thetas=claimed_theta_files(f"{THETA}.csv"),
        reports=claimed_theta_files(f"{THETA}.json"),
        truths=claimed_theta_files(f"{ROUND}/truth.csv"),
        weights=[report for reports in CLAIMED_RANKERS.values() for report in reports],
        code=code("stages.claims"),
    output:
        page=report(
            "results/claims.md", caption="../report/claims.rst", category="Claims"
        ),
        table="results/claims.csv",
    log:
        "results/logs/claims/claims.log",
    benchmark:
        "results/benchmarks/claims/claims.tsv"
    threads: 1
    resources:
        mem_mb=2000,
    params:
        claims=CLAIMS,
        parts=[tuple(part) for part in CLAIM_PARTS],
        datasets=STUDY["datasets"],
        places=claimed_places(),
        thetas=claimed_thetas(),
        rankers=list(CLAIMED_RANKERS),
        seeds=SEEDS,
        labels=LABELS,
        resamples=config["evaluation"]["resamples"],
        bootstraps=config["evaluation"]["bootstraps"],
    message:
        "Judge the claims"
    script:
        "../scripts/judge_claims.py"


rule claims:
    input:
        rules.judge_claims.output,
    message:
        "Done: claims"
