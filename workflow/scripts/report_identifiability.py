from ultrbench.stages.job import job

with job(snakemake):
    from pathlib import Path

    from ultrbench.stages.diagnosis import LogFiles, write_identifiability

    params = snakemake.params
    folders = iter(Path(truth).parent for truth in snakemake.input.truths)
    write_identifiability(
        [
            LogFiles(policy, setting, track, seed, [next(folders) for _ in range(rounds)])
            for (policy, setting, track, _, seed), rounds in zip(
                params.logs, params.rounds, strict=True
            )
        ],
        Path(snakemake.output.report),
        Path(snakemake.output.tables[0]).with_suffix(""),
    )
