# The pinned packages and what the tests need, on the Python of the continuous integration; the
# default command is the continuous integration itself, which does not build it: it has no engine.
#   docker build -t ultrbench . && docker run --rm ultrbench
#   docker run --rm -v "$PWD/results:/ultrbench/results" ultrbench snakemake --cores all
FROM python:3.11-slim
RUN apt-get update \
    && apt-get install --yes --no-install-recommends libgomp1 make munge slurm-wlm \
    && rm -rf /var/lib/apt/lists/*
WORKDIR /ultrbench
COPY . .
RUN make .venv/installed
ENV PATH=/ultrbench/.venv/bin:$PATH
CMD ["bash", ".ci/run"]
