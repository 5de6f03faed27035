from ultrbench.stages.job import job

with job(snakemake):
    from pathlib import Path

    from ultrbench.reporting.captions import ONE_LOG
    from ultrbench.stages.paper import write_tables

    params = snakemake.params
    stems = [Path(table).with_suffix("") for table in snakemake.output.tables[::3]]
    write_tables(
        Path(snakemake.input.dataset[0]).parent,
        Path(snakemake.input.comparisons),
        Path(snakemake.input.conventions),
        Path(snakemake.input.exposure) if snakemake.input.exposure else None,
        dict(zip(params.tables, stems, strict=True)),
        reports=[
            (method, Path(report))
            for method, report in zip(params.estimated, snakemake.input.reports, strict=True)
        ],
        groups=params.groups,
        labels=params.labels,
        metrics=params.metrics,
        headline=params.headline,
        control=params.control,
        without_relevant=params.without_relevant,
        list_size=params.list_size,
        name=snakemake.wildcards.dataset,
        policy=snakemake.wildcards.policy,
        setting=snakemake.wildcards.setting,
        remark=ONE_LOG if params.one_log else "",
    )
