from ultrbench.stages.job import job

with job(snakemake):
    from pathlib import Path

    from ultrbench.stages.catalogue import study_catalogue

    params = snakemake.params
    study_catalogue(
        Path(snakemake.output.orders),
        Path(snakemake.output.exposure),
        **params.size,
        examination=params.examination,
        seed=params.seed,
    )
