from ultrbench.stages.job import job

with job(snakemake):
    from pathlib import Path

    from ultrbench.stages.diagnosis import EstimateFiles, write_propensity_errors

    params, files = snakemake.params, snakemake.input
    folders = iter(Path(truth).parent for truth in files.truths)
    write_propensity_errors(
        [
            EstimateFiles(
                policy, setting, method, seed, Path(table), Path(report),
                [next(folders) for _ in range(rounds)],
            )  # fmt: skip
            for (policy, setting, _, _, seed, method, _), rounds, table, report in zip(
                params.estimates, params.rounds, files.tables, files.reports, strict=True
            )
        ],
        Path(snakemake.output.tables[0]).with_suffix(""),
        [Path(file) for file in snakemake.output.figure],
        order=params.order,
        labels=params.labels,
        dataset=snakemake.wildcards.dataset,
    )
