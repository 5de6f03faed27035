from ultrbench.stages.job import job

with job(snakemake):
    from itertools import groupby
    from pathlib import Path

    from ultrbench.stages import metrics_tables as tables

    params, files, made = snakemake.params, snakemake.input, snakemake.output
    folder = Path(made.tables[0]).parents[1]
    estimates = dict(zip(params.clicked, map(Path, files.counterfactual), strict=True))
    exposures = dict(zip(params.simulated, map(Path, files.exposure), strict=True))
    for where, rounds, power in zip(params.study, files.rounds, files.power, strict=True):
        dataset, policy, setting = where
        stem = folder / dataset / f"{policy}.{setting}"
        rows = tables.Rows(
            f"data set {dataset}, policy {policy}, setting {setting}",
            params.groups[setting],
            params.labels,
            params.list_sizes[policy],
            params.headline,
        )
        first, *_ = params.rankings
        for ranking in params.rankings:
            tables.write_metrics_table(
                Path(rounds),
                Path(f"{stem}.{'.'.join(ranking)}.metrics"),
                rows,
                ranking=ranking,
                metrics=params.metrics,
            )
        tables.write_power_table(Path(power), Path(f"{stem}.power"), rows, ranking=first)
        if where in estimates:
            tables.write_counterfactual_table(
                estimates[where], Path(f"{stem}.counterfactual"), rows
            )
        if where in exposures:
            tables.write_exposure_table(exposures[where], Path(f"{stem}.exposure"), rows)
    for stem, figure in groupby(map(Path, made.figures), lambda file: file.with_suffix("")):
        drawn = list(figure)
        name, _, setting = stem.name.partition(".")
        of = {
            policy: (exposures if name == "exposure" else estimates)[dataset, policy, s]
            for dataset, policy, s in params.simulated
            if (dataset, s) == (stem.parent.name, setting)
        }
        if name == "exposure":
            tables.draw_exposure(of, drawn, params.order, params.labels)
        elif name == "counterfactual":
            tables.draw_counterfactual(of, drawn, params.order, params.labels)
        else:
            tables.write_catalogue_tables(
                *map(Path, files.catalogue),
                *(folder / "catalogue" / table for table in ("sampled", "exposure")),
                drawn,
            )
