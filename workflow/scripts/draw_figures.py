from ultrbench.stages.job import job

with job(snakemake):
    from itertools import groupby
    from pathlib import Path

    from ultrbench.stages import paper

    params, files = snakemake.params, snakemake.input
    dataset = Path(files.dataset[0]).parent
    style = {"order": params.order, "labels": params.labels}
    estimates = [
        paper.ThetaFiles(*entry[:4], Path(table), [Path(truth)])
        for entry, table, truth in zip(params.thetas, files.thetas, files.truths, strict=True)
    ]
    rounds = iter(map(Path, files.rounds))
    scores = {
        setting: paper.rounds_frame(
            {policy: next(rounds) for policy in params.policies},
            params.candidates,
            params.validation,
            params.headline,
        )
        for setting in params.settings
    }
    folders = dict.fromkeys(Path(log).parent for log in files.logs)
    shown = [policy for policy in params.policies for _ in params.seeds]
    for stem, figure in groupby(map(Path, snakemake.output.figures), lambda f: f.with_suffix("")):
        drawn = list(figure)
        name, _, setting = stem.name.partition(".")
        if name == "grades":
            paper.draw_grades(dataset, zip(shown, folders, strict=True), drawn)
        elif name == "propensity":
            own = [estimate for estimate in estimates if estimate.setting == setting]
            paper.draw_propensities(own, drawn, **style)
        elif name == "rounds":
            paper.draw_rounds(scores[setting], drawn, metric=params.headline, **style)
        else:
            paper.draw_spread(scores[setting], drawn, metric=params.headline, **style)
