from ultrbench.stages.job import job

with job(snakemake):
    from pathlib import Path

    from ultrbench.stages.trec import export_qrels

    export_qrels(Path(snakemake.input.dataset[0]).parent, Path(snakemake.output.qrels))
