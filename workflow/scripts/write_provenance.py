from ultrbench.stages.job import job

with job(snakemake):
    from pathlib import Path

    from ultrbench.stages.provenance import write_disk_use, write_provenance

    params = snakemake.params
    files = map(Path, snakemake.input.datasets)
    write_provenance(
        Path(snakemake.output.provenance),
        dict(zip(params.datasets, files, strict=True)),
        config=params.config,
        source=Path(params.source),
    )
    results = Path(snakemake.output.provenance).parent
    write_disk_use(Path(snakemake.output.disk_use), results, Path(params.downloads))
