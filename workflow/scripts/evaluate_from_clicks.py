from ultrbench.stages.job import job, replicates

with job(snakemake):
    from pathlib import Path

    from ultrbench.stages.counterfactual import evaluate_counterfactually
    from ultrbench.stages.exposure import measure_exposure

    params, files = snakemake.params, snakemake.input
    dataset = Path(files.dataset[0]).parent
    candidates = dict(zip(params.seeds, map(Path, files.candidates), strict=True))
    logs = {seed: part(files.truth)[0].parent for seed, part in replicates(snakemake)}
    scores = dict(zip(params.rankers, map(Path, files.scores), strict=True))
    if exposure := snakemake.output.get("exposure"):
        measure_exposure(
            dataset, candidates, logs, scores, Path(exposure), validation=params.validation
        )
    evaluate_counterfactually(
        dataset,
        candidates,
        logs,
        {(method, seed): scores[method, last, seed] for method, last, seed in params.last},
        dict(zip(params.thetas, map(Path, files.thetas), strict=True)),
        Path(snakemake.output.counterfactual),
        validation=params.validation,
        eps=params.eps,
        bootstraps=params.bootstraps,
    )
