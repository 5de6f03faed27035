from ultrbench.stages.job import job

with job(snakemake):
    from pathlib import Path

    from ultrbench.stages.paper import write_summary

    params, files = snakemake.params, snakemake.input
    write_summary(
        Path(snakemake.output[0]),
        [Path(table) for table in files.tables],
        [Path(figure) for figure in files.figures],
        [
            (*where.split("/"), Path(table))
            for where, table in zip(params.comparisons, files.comparisons, strict=True)
        ],
        headline=params.headline,
        labels=params.labels,
    )
