rule write_expected:
    input:
        rules.paper.input,
        rules.claims.input,
        study_files(f"{EVALUATION}/comparisons.csv"),
        study_files(f"{EVALUATION}/rounds.csv"),
        provenance="results/provenance.json",
        code=code("stages.expected"),
    output:
        expand("results/expected/{table}.csv", table=COMPARED),
        "results/expected/provenance.json",
    log:
        "results/logs/expected.log",
    threads: 1
    resources:
        mem_mb=1000,
    params:
        changelog=f"{ROOT}/CHANGELOG.md",
    message:
        "Note the expected results"
    script:
        "../scripts/write_expected.py"


rule expected:
    input:
        rules.write_expected.output,
