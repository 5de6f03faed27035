from ultrbench.stages.job import job, replicates

with job(snakemake):
    from pathlib import Path

    from ultrbench.stages.clicks import simulate_clicks

    params = snakemake.params
    for seed, part in replicates(snakemake):
        simulate_clicks(
            Path(snakemake.input.dataset[0]).parent,
            *part(snakemake.input.candidates),
            part(snakemake.output.truth)[0].parent,
            setting=params.setting,
            log=params.log_name,
            round_=int(snakemake.wildcards.round),
            seed=seed,
            ranker=part(snakemake.input.ranker) or None,
            splits=params.splits,
        )
