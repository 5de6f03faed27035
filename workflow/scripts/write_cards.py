from ultrbench.stages.job import job

with job(snakemake):
    from pathlib import Path

    from ultrbench.stages.runtime import write_runtime
    from ultrbench.stages.sweeps import write_cards

    params, out = snakemake.params, snakemake.output
    pairs = zip(map(Path, out.cards[::2]), map(Path, out.cards[1::2]), strict=True)
    write_cards(
        dict(zip(params.axes, map(Path, snakemake.input.tables), strict=True)),
        dict(zip(params.methods, pairs, strict=True)),
        estimators=params.estimators,
        about=f"Data set {snakemake.wildcards.dataset}, {len(params.seeds)} seeds.",
        reference=params.reference,
        trees=params.trees,
        labels=params.labels,
    )
    write_runtime(
        [
            ({"method": method, "policy": policy, "setting": setting}, Path(file))
            for method, policy, setting, file in params.benchmarks
        ],
        len(params.seeds),
        Path(out.runtime),
    )
