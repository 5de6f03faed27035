from ultrbench.stages.job import job

with job(snakemake):
    from pathlib import Path

    from ultrbench.stages.evaluation import evaluate_rankers

    params = snakemake.params
    evaluate_rankers(
        Path(snakemake.input.dataset[0]).parent,
        dict(zip(params.seeds, map(Path, snakemake.input.candidates), strict=True)),
        dict(zip(params.rankers, map(Path, snakemake.input.scores), strict=True)),
        Path(snakemake.output.per_query),
        Path(snakemake.output.rounds),
        Path(snakemake.output.conventions),
        kinds=params.kinds,
        metrics=params.metrics,
        headline=params.headline,
        without_relevant=params.without_relevant,
    )
