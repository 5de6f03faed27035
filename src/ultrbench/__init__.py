"""Benchmark harness for unbiased learning to rank on gradient-boosted trees.

The package computes: pure functions on arrays and frames, and one stage function a step from
given input paths to given output paths. The workflow (``Snakefile``, ``workflow/``) wires files.
"""

__version__ = "0.1.0"
