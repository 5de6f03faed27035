from ultrbench.stages.job import job

with job(snakemake):
    from pathlib import Path

    from ultrbench.stages.trec import export_runs

    params, files = snakemake.params, snakemake.input
    runs = {
        (f"{method}.{validation}.seed{seed}", Path(scores), validation)
        for (method, _, seed), scores in zip(params.rankers, files.scores, strict=True)
        for validation in params.validations
    } | {
        (f"logging_policy.seed{seed}", Path(path), "test_all_scores")
        for seed, path in zip(params.seeds, files.candidates, strict=True)
    }
    folder = Path(snakemake.output.runs)
    export_runs(
        Path(files.dataset[0]).parent, {run: folder / f"{run[0]}.run" for run in sorted(runs)}
    )
