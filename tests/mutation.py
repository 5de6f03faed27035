"""Change a core module in one place at a time; its unit tests must notice.

``python tests/mutation.py metrics significance --mutants 20`` prints the changes that no test sees.
"""

import argparse
import ast
import copy
import multiprocessing
import os
import random
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import lightgbm  # noqa: F401
import pandas as pd  # noqa: F401
import pytest
import scipy.stats  # noqa: F401

ROOT = Path(__file__).parents[1]
TESTS = {
    "evaluation/metrics": ["test_metrics"],
    "evaluation/significance": ["test_significance"],
    "evaluation/counterfactual": ["test_counterfactual"],
    "ranking/objectives": ["test_objectives", "test_weights"],
    "ranking/targets": ["test_weights", "test_boosting"],
    "ranking/crossfit": ["test_crossfit"],
    "simulation/behaviour": ["test_click_models", "test_own_code"],
    "simulation/clicks": ["test_clicks", "test_click_models"],
    "simulation/display": ["test_clicks", "test_click_models"],
    "simulation/truth": ["test_click_models"],
    "simulation/log": ["test_log"],
    "propensity/choice": ["test_choice", "test_crossfit"],
    "propensity/confounder": ["test_crossfit"],
    "propensity/crossfit": ["test_crossfit"],
    "propensity/ctr": ["test_propensity"],
    "propensity/dla": ["test_propensity"],
    "propensity/exposures": ["test_fixed_effects", "test_harvest"],
    "propensity/fixed_effects": ["test_fixed_effects"],
    "propensity/fixed_point": ["test_propensity"],
    "propensity/harvest": ["test_harvest"],
    "propensity/last_clicks": ["test_weights"],
    "propensity/lightgbm_position": ["test_joint"],
    "propensity/paird": ["test_joint"],
    "propensity/position_effects": ["test_fixed_effects", "test_harvest"],
    "propensity/rem": ["test_rem"],
    "propensity/sequential": ["test_fixed_effects"],
    "propensity/trust": ["test_weights"],
    "propensity/upe": ["test_upe"],
    "propensity/vectorization": ["test_joint"],
}
SWAPS = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.Pow: ast.Mult,
    ast.FloorDiv: ast.Div, ast.Mod: ast.Mult, ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd,
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq, ast.And: ast.Or, ast.Or: ast.And, ast.Is: ast.IsNot, ast.IsNot: ast.Is,
    ast.In: ast.NotIn, ast.NotIn: ast.In,
}  # fmt: skip
NAMES = {
    "min": "max", "minimum": "maximum", "argmin": "argmax", "any": "all", "zeros": "ones",
    "floor": "ceil", "sum": "mean",
}  # fmt: skip
NAMES |= {new: old for old, new in NAMES.items()}


def replacements(node: ast.AST) -> Iterator[ast.AST]:
    """Yield what takes a node's place: another operator, number or function, or nothing."""

    def altered(**fields: object) -> ast.AST:
        new = copy.copy(node)
        vars(new).update(fields)
        return new

    match node:
        case ast.Constant(value=bool(value)):
            yield altered(value=not value)
        case ast.Constant(value=int(value) | float(value)):
            yield altered(value=value + 1 if abs(value) < 1e9 else value / 2)
        case ast.UnaryOp(operand=operand):
            yield operand
        case ast.Compare(ops=ops):
            yield altered(ops=[SWAPS[type(op)]() for op in ops])
        case ast.BinOp(op=op) | ast.BoolOp(op=op) | ast.AugAssign(op=op) if type(op) in SWAPS:
            yield altered(op=SWAPS[type(op)]())
        case ast.If(test=test) | ast.IfExp(test=test) | ast.While(test=test):
            yield altered(test=ast.UnaryOp(ast.Not(), test))
        case ast.Name(id=name) if name in NAMES:
            yield altered(id=NAMES[name])
        case ast.Attribute(attr=name) if name in NAMES:
            yield altered(attr=NAMES[name])
        case ast.Expr(value=ast.Call()):
            yield ast.Pass()
    if isinstance(node, ast.AugAssign):
        yield ast.Pass()


def mutants(source: str) -> Iterator[tuple[int, str, str]]:
    """Yield line, change and text of every variant with one node replaced.

    Annotations and what an error says are left alone.
    """
    tree = ast.parse(source)
    waiting: list[ast.AST] = [tree]
    while waiting:
        parent = waiting.pop()
        for field, value in ast.iter_fields(parent):
            if field in ("annotation", "returns", "exc"):
                continue
            for node in value if isinstance(value, list) else [value]:
                if not isinstance(node, ast.AST):
                    continue
                waiting.append(node)
                for new in replacements(node):
                    swapped = [new if n is node else n for n in value] if value is not node else new
                    setattr(parent, field, swapped)
                    change = " -> ".join(ast.unparse(n).partition("\n")[0] for n in (node, new))
                    yield node.lineno, change, ast.unparse(ast.fix_missing_locations(tree))
                    setattr(parent, field, value)


def run_tests(package: Path, files: list[str]) -> None:
    """Leave with pytest's verdict on a package."""
    os.environ |= {"PYTHONPATH": str(package), "PYTHONDONTWRITEBYTECODE": "1"}
    sys.path.insert(0, str(package))
    os.chdir(ROOT)
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.dup2(nowhere, 2)
    sys.exit(pytest.main(["-x", "-q", "-p", "no:cacheprovider", "--doctest-modules", *files]))


def notices(package: Path, module: str, tests: list[str], timeout: float = 300) -> bool:
    """Whether a test fails, or does not come to an end, with another package in place."""
    files = [str(package / f"ultrbench/{module}.py")]
    files += [str(ROOT / f"tests/unit/{name}.py") for name in tests]
    # A fork has pytest and the libraries loaded already.
    process = multiprocessing.get_context("fork").Process(target=run_tests, args=(package, files))
    process.start()
    process.join(timeout)
    if process.is_alive():
        process.kill()
        process.join()
    return process.exitcode != 0


def main() -> int:
    """Print the changes that no test noticed; return their number."""
    parser = argparse.ArgumentParser(description="Change core modules; their tests must notice.")
    parser.add_argument("modules", nargs="*", default=list(TESTS), metavar="MODULE")
    parser.add_argument("--mutants", type=int, default=20, metavar="N", help="of each module")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    survivors = 0
    for module, tests in TESTS.items():
        if not any(name in (module, module.partition("/")[2]) for name in options.modules):
            continue
        source = (ROOT / f"src/ultrbench/{module}.py").read_text()
        found = list(mutants(source))
        chosen = random.Random(options.seed).sample(found, min(options.mutants, len(found)))
        with tempfile.TemporaryDirectory() as folder:
            package = Path(shutil.copytree(ROOT / "src", Path(folder, "src")))
            start = time.monotonic()
            if notices(package, module, tests):
                sys.exit(f"{module}: its tests fail as they are")
            timeout = 10 + 5 * (time.monotonic() - start)
            unseen = 0
            for line, change, text in sorted(chosen):
                (package / f"ultrbench/{module}.py").write_text(text)
                if not notices(package, module, tests, timeout):
                    print(f"{module}.py:{line}: {change}", flush=True)
                    unseen += 1
        print(f"{module}: {unseen} of {len(chosen)} unseen, of {len(found)} there are", flush=True)
        survivors += unseen
    return survivors


if __name__ == "__main__":
    sys.exit(min(main(), 100))
