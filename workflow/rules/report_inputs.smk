"""What the report shows, in its order."""


def of_datasets(pattern):
    return expand(pattern, dataset=STUDY["datasets"])


# (data set, policy, setting, candidates, validation) of the results tables.
REPORT_TABLES = [
    (dataset, policy, setting, candidates, validation)
    for dataset in STUDY["datasets"]
    for setting in STUDY["settings"]
    for policy in STUDY["policies"]
    for candidates in KINDS
    for validation in VALIDATIONS
]
REPORT_FIGURES = [
    *[
        file
        for name in [*FIGURES, *MEASURED, *(["ledger"] if LEDGER_SETTINGS else [])]
        for file in of_datasets(f"results/figures/{{dataset}}/{name}.svg")
    ],
    *[f"{figure}.svg" for figure in METRIC_FIGURES],
]
CAPTIONED = list(
    dict.fromkeys(Path(file).name.partition(".")[0] for file in REPORT_FIGURES)
)


def report_tables(ending):
    keys = ("dataset", "policy", "setting", "candidates", "validation")
    return [
        f"{TABLE}.{ending}".format(**dict(zip(keys, place))) for place in REPORT_TABLES
    ]
