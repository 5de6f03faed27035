from ultrbench.stages.job import job

with job(snakemake):
    from pathlib import Path

    from ultrbench.stages.sweeps import SweptTheta, summarise_sweep

    params, files, out = snakemake.params, snakemake.input, snakemake.output
    found = zip(files.thetas, files.reports, files.truths, strict=True)
    summarise_sweep(
        [
            SweptTheta(*theta, *map(Path, paths))
            for theta, paths in zip(params.thetas, found, strict=True)
        ],
        {
            tuple(point): Path(file)
            for point, file in zip(params.points, files.scores, strict=True)
        },
        Path(out.table),
        [Path(file) for file in out.drawn],
        label=params.label,
        order=params.order,
        labels=params.labels,
        candidates=params.candidates,
        validation=params.validation,
        metric=params.metric,
    )
