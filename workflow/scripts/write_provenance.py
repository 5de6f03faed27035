from ultrbench.stages.job import job

with job(snakemake):
    from pathlib import Path

    from ultrbench.stages.provenance import write_provenance

    params = snakemake.params
    files = map(Path, snakemake.input.datasets)
    write_provenance(
        Path(snakemake.output[0]),
        dict(zip(params.datasets, files, strict=True)),
        config=params.config,
        source=Path(params.source),
    )
