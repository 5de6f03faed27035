"""Which source files of the package a module imports, directly or not, also within functions."""

import ast
import os
from functools import cache
from pathlib import Path

PACKAGE = Path(__file__).parents[1]


@cache
def imports(file: Path) -> frozenset[str]:
    """Return the modules of the package that a file imports, also within functions.

    Examples
    --------
    >>> sorted(imports(PACKAGE / "own_code.py"))
    ['ultrbench.errors']
    """
    found = set()
    for node in ast.walk(ast.parse(file.read_bytes())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return frozenset(name for name in found if name.startswith("ultrbench.") and _exists(name))


def _file(module: str) -> Path:
    return PACKAGE.joinpath(*module.split(".")[1:]).with_suffix(".py")


def _exists(module: str) -> bool:
    return _file(module).is_file()


def import_closure(modules: list[str]) -> list[str]:
    """Return the source files that some modules of the package need.

    The ``__init__.py`` of packages are left out: they hold no code that a result depends on.

    Parameters
    ----------
    modules : list of str
        Dotted names below ``ultrbench``.

    Returns
    -------
    list of str
        Paths, sorted; relative to the current folder where they lie below it.

    Examples
    --------
    >>> [Path(file).name for file in import_closure(["ultrbench.seeding"])]
    ['seeding.py']
    """
    done: set[str] = set()
    waiting = list(modules)
    while waiting:
        module = waiting.pop()
        if module not in done:
            done.add(module)
            waiting += imports(_file(module))
    here = Path.cwd()
    files = sorted(_file(module) for module in done)
    return [os.fspath(f.relative_to(here) if f.is_relative_to(here) else f) for f in files]
