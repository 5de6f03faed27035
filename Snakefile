from snakemake.utils import min_version

min_version("9.10")


configfile: "config/config.yaml"


report: "workflow/report/workflow.rst"


container: "docker://python:3.11-slim"


include: "workflow/rules/common.smk"
include: "workflow/rules/inputs.smk"
include: "workflow/rules/diagnosis_inputs.smk"
include: "workflow/rules/data.smk"
include: "workflow/rules/policies.smk"
include: "workflow/rules/clicks.smk"
include: "workflow/rules/propensity.smk"
include: "workflow/rules/ranking.smk"
include: "workflow/rules/evaluation.smk"
include: "workflow/rules/metrics.smk"
include: "workflow/rules/diagnosis.smk"
include: "workflow/rules/ledger.smk"
include: "workflow/rules/paper.smk"
include: "workflow/rules/claims.smk"
include: "workflow/rules/sweeps.smk"
include: "workflow/rules/tuning.smk"
include: "workflow/rules/report_inputs.smk"
include: "workflow/rules/report.smk"
include: "workflow/rules/expected.smk"


# The nodes of a cluster may have no way out.
localrules:
    fetch_dataset,
    all,
    data,
    policies,
    clicks,
    propensity,
    ranking,
    evaluation,
    metrics,
    trec,
    identifiability,
    ledger,
    paper,
    claims,
    sweeps,
    tuning,
    report,
    expected,


onerror:
    for file in log:
        print(
            *advice_on(read_run(Path(file).read_text())), sep="\n", file=sys.stderr
        )


rule all:
    default_target: True
    input:
        rules.paper.input,
        rules.claims.input,
    message:
        "Done: results/summary.md and results/claims.md"
