from ultrbench.stages.job import job

with job(snakemake):
    from pathlib import Path

    from ultrbench.stages.report import write_report

    params, files = snakemake.params, snakemake.input
    tables = zip(map(Path, files.tables), map(Path, files.pages), strict=True)
    write_report(
        Path(snakemake.output[0]),
        Path(files.template),
        results=dict(zip(map(tuple, params.tables), tables, strict=True)),
        claims=params.claims,
        verdicts=Path(files.claims),
        sections=[
            (name, title, [Path(file) for file in files[name]]) for name, title in params.sections
        ],
        figures=[Path(file) for file in files.figures],
        captions={Path(file).stem: Path(file) for file in files.captions},
        provenance=Path(files.provenance),
        benchmarks=Path(params.benchmarks),
        headline=params.headline,
        labels=params.labels,
    )
