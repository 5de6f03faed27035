from ultrbench.stages.job import job

with job(snakemake):
    from pathlib import Path

    from ultrbench.stages.ledger import PairOfTables, write_ledger

    params, files = snakemake.params, snakemake.input
    where = [(policy, setting) for policy in params.policies for setting in params.rows]
    write_ledger(
        [
            PairOfTables(policy, setting, params.rows[setting], Path(evaluated), Path(expected))
            for (policy, setting), evaluated, expected in zip(
                where, files.evaluated, files.expected, strict=True
            )
        ],
        Path(snakemake.output.tables[0]).with_suffix(""),
        [Path(file) for file in snakemake.output.figure],
        metric=params.metric,
        bootstraps=params.bootstraps,
        order=params.order,
        labels=params.labels,
        dataset=snakemake.wildcards.dataset,
    )
