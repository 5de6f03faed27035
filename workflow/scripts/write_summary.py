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
            (*where.split("/"), Path(first), Path(comparisons))
            for where, first, comparisons in zip(
                params.comparisons, files.first, files.comparisons, strict=True
            )
        ],
        [Path(about) for about in files.datasets],
        headline=params.headline,
        labels=params.labels,
    )
