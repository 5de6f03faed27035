from ultrbench.stages.job import job

with job(snakemake):
    from ultrbench.stages.data import fetch_dataset

    params = snakemake.params
    fetch_dataset(params.entry, params.dataset, params.downloads)
