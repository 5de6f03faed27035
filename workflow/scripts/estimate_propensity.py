from ultrbench.stages.job import job, replicates

with job(snakemake):
    from pathlib import Path

    from ultrbench.stages.propensity import estimate_propensity

    for seed, part in replicates(snakemake):
        estimate_propensity(
            Path(snakemake.input.dataset[0]).parent,
            *part(snakemake.input.candidates),
            [truth.parent for truth in part(snakemake.input.truth)],
            *part(snakemake.output.table),
            *part(snakemake.output.report),
            name=snakemake.wildcards.estimator,
            estimator=snakemake.params.estimator,
            hidden_features=snakemake.params.hidden_features,
            more_rounds=snakemake.params.more_rounds,
            seed=seed,
            training=snakemake.params.get("training"),
            model=next(iter(part(snakemake.output.get("model", []))), None),
        )
