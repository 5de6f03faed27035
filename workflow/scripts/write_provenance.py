from ultrbench.stages.job import job

with job(snakemake):
    from pathlib import Path

    from ultrbench.stages.provenance import write_disk_use, write_provenance
    from ultrbench.stages.runtime import write_runtimes

    params = snakemake.params
    files = map(Path, snakemake.input.datasets)
    write_provenance(
        Path(snakemake.output.provenance),
        dict(zip(params.datasets, files, strict=True)),
        config=params.config,
        source=Path(params.source),
    )
    results = Path(snakemake.output.provenance).parent
    write_runtimes(Path(params.benchmarks), Path(snakemake.output.runtime))
    write_disk_use(Path(snakemake.output.disk_use), results, Path(params.downloads))
