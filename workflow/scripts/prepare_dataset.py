from ultrbench.stages.job import job

with job(snakemake):
    from pathlib import Path

    from ultrbench.stages.data import prepare_dataset

    prepare_dataset(
        snakemake.params.entry,
        snakemake.wildcards.dataset,
        Path(snakemake.params.downloads),
        Path(snakemake.output.report).parent,
    )
