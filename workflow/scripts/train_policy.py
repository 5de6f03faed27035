from ultrbench.stages.job import job, replicates

with job(snakemake, largest=1 << 62):
    from pathlib import Path

    from ultrbench.stages.policies import train_policy

    params = snakemake.params
    for seed, part in replicates(snakemake):
        train_policy(
            Path(snakemake.input.dataset[0]).parent,
            *part(snakemake.output.candidates),
            *part(snakemake.output.report),
            policy=params.policy,
            policy_queries=params.policy_queries,
            list_size=params.list_size,
            seed=seed,
        )
