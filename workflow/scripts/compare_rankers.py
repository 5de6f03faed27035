from ultrbench.stages.job import job

with job(snakemake):
    from pathlib import Path

    from ultrbench.stages.evaluation import compare_rankers

    params = snakemake.params
    compare_rankers(
        Path(snakemake.input.per_query),
        Path(snakemake.output.comparisons),
        Path(snakemake.output.power),
        reference=params.reference,
        metrics=params.metrics,
        headline=params.headline,
        not_marked=params.not_marked,
        resamples=params.resamples,
        bootstraps=params.bootstraps,
    )
