import sys

from ultrbench.stages.job import job

with job(snakemake):
    from pathlib import Path

    from ultrbench.stages.expected import write_expected

    line = write_expected(
        Path(snakemake.input.provenance).parent,
        Path(snakemake.output[0]).parent,
        Path(snakemake.params.changelog).read_text(encoding="utf-8"),
    )
print(f"Add to CHANGELOG.md, with the cause:\n{line}", file=sys.stderr)
