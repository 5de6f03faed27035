from ultrbench.stages.job import job

with job(snakemake):
    from pathlib import Path

    from ultrbench.stages.runtime import write_runtime
    from ultrbench.stages.tuning import Trial, tune

    params, files, out = snakemake.params, snakemake.input, snakemake.output
    found = zip(files.rankers, files.thetas, files.reports, files.truths, strict=True)
    tune(
        [
            Trial(*trial, *map(Path, paths))
            for trial, paths in zip(params.trials, found, strict=True)
        ],
        Path(out.table),
        Path(out.page),
        grids=params.grids,
        validation=params.validation,
        oracle_tuned=params.oracle_tuned,
        labels=params.labels,
    )
    write_runtime(
        [
            ({"configuration": name, "policy": policy}, Path(file))
            for name, policy, file in params.benchmarks
        ],
        len(params.seeds),
        Path(out.runtime),
    )
