"""Evaluate a TREC run file on true grades.

Ties are ordered by descending document name, as trec_eval does; unjudged documents have grade 0;
nDCG has gain 2^grade - 1."""

from ultrbench.evaluation.__main__ import add_arguments, run

__all__ = ["EXAMPLE", "add_arguments", "run"]

EXAMPLE = "ranker/grades.run ranker/qrels.txt --metrics nDCG@10 ERR@10"
