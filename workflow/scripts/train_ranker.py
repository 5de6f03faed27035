from ultrbench.stages.job import job, replicates

with job(snakemake):
    from pathlib import Path

    from ultrbench.stages.ranking import train_ranker

    params = snakemake.params
    for seed, part in replicates(snakemake):
        train_ranker(
            Path(snakemake.input.dataset[0]).parent,
            *part(snakemake.input.candidates),
            [truth.parent for truth in part(snakemake.input.truth)],
            *part(snakemake.output.model),
            *part(snakemake.output.report),
            *part(snakemake.output.scores),
            method=params.method,
            objective=params.objective,
            training=params.training,
            eps=params.eps,
            cutoff=params.cutoff,
            hidden_features=params.hidden_features,
            seed=seed,
            theta=next(iter(part(snakemake.input.theta)), None),
            joint_model=next(iter(part(snakemake.input.joint_model)), None),
            validation_theta=next(iter(part(snakemake.input.validation_theta)), None),
        )
