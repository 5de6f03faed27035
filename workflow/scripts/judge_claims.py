from ultrbench.stages.job import job

with job(snakemake):
    from pathlib import Path

    from ultrbench.reporting.claims import Part
    from ultrbench.stages.claims import judge_claims

    params, files = snakemake.params, snakemake.input
    estimates = [
        tuple(map(Path, paths))
        for paths in zip(files.thetas, files.reports, files.truths, strict=True)
    ]
    seeds = len(params.seeds)
    judge_claims(
        params.claims,
        [Part(*part) for part in params.parts],
        dict(zip(params.datasets, map(Path, files.datasets), strict=True)),
        dict(zip(params.places, map(Path, files.per_query), strict=True)),
        {
            theta: estimates[index * seeds : (index + 1) * seeds]
            for index, theta in enumerate(params.thetas)
        },
        {
            ranker: list(map(Path, files.weights[index * seeds : (index + 1) * seeds]))
            for index, ranker in enumerate(params.rankers)
        },
        Path(snakemake.output.table),
        Path(snakemake.output.page),
        labels=params.labels,
        resamples=params.resamples,
        bootstraps=params.bootstraps,
    )
