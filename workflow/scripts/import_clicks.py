from ultrbench.stages.job import job, replicates

with job(snakemake):
    from pathlib import Path

    from ultrbench.stages.clicks import import_clicks

    for _, part in replicates(snakemake):
        import_clicks(
            Path(snakemake.input.dataset[0]).parent,
            Path(snakemake.params.folder),
            part(snakemake.output.truth)[0].parent,
        )
