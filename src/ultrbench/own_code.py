"""Functions by name: those of the package's registries, and those in a file of one's own.

Where a configuration names a kind, ``mine.py:estimate`` stands for the function `estimate` in the
file ``mine.py`` of the study's folder.
"""

import ast
import functools
import sys
import traceback
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import chdir, contextmanager
from copy import deepcopy
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from ultrbench.errors import UserError

if TYPE_CHECKING:
    import numpy as np


def own_file(kind: str) -> str | None:
    """Return the file that a kind names; None for one of a registry.

    Examples
    --------
    >>> own_file("mine.py:estimate"), own_file("dla")
    ('mine.py', None)
    """
    return kind.rpartition(":")[0] or None


def own_problem(kind: str) -> str | None:
    """Return what is wrong with the file that a kind names, without running it; None if nothing.

    Examples
    --------
    >>> own_problem("absent.py:estimate").partition(" in ")[0]
    'there is no file absent.py'
    >>> own_problem("dla")
    """
    file, _, name = kind.rpartition(":")
    if not file:
        return None
    if not Path(file).is_file():
        return f"there is no file {file} in {Path.cwd()}; write it, or put its path right."
    try:
        body = ast.parse(Path(file).read_bytes()).body
    except (SyntaxError, ValueError, MemoryError, RecursionError) as error:
        said = str(error) or "it is nested too deep"
        return f"{file}:{getattr(error, 'lineno', None) or 1}: {said}; put this right."
    defined = [part.name for part in body if isinstance(part, ast.FunctionDef)]
    if name not in defined:
        there = ", ".join(defined) or "none"
        return f"{file} defines no function {name}; functions there: {there}."
    return None


def find_function(registry: Mapping[str, str], kind: str) -> Callable[..., Any]:
    """Return the function that a kind stands for, importing its module or its file.

    Parameters
    ----------
    registry : mapping
        ``module:function`` by kind.
    kind : str
        Name in the registry, or ``file.py:function``, relative to the current folder.

    Raises
    ------
    UserError
        When the file cannot be imported; the function of a file raises it for every error in it,
        naming the lines. Lists and mappings are lent to it in copies.

    Examples
    --------
    >>> import tempfile
    >>> file = Path(tempfile.mkdtemp()) / "mine.py"
    >>> _ = file.write_text("def one():\\n    return 1\\n")
    >>> find_function({}, f"{file}:one")()
    1
    """
    file = own_file(kind)
    if file is None:
        module, _, name = registry[kind].partition(":")
        return getattr(import_module(module), name)
    problem = own_problem(kind)
    if problem:
        raise UserError(f"{kind}: {problem}")
    name = f"ultrbench_own_{Path(file).stem}"
    own = sys.modules[name] = ModuleType(name)  # dataclasses look their module up
    own.__file__ = file
    with _told(file, "the file cannot be imported: "):
        exec(compile(Path(file).read_bytes(), file, "exec"), own.__dict__)
    function = getattr(own, kind.rpartition(":")[2], None)
    if not callable(function):
        raise UserError(
            f"{kind}: once {file} has run, this is no function any more; put this right"
        )

    @functools.wraps(function)
    def told(*arguments: Any, **keys: Any) -> Any:
        lent = {key: deepcopy(v) if isinstance(v, list | dict) else v for key, v in keys.items()}
        with _told(file):
            return function(*arguments, **lent)

    return told


def read_only(array: "np.ndarray") -> "np.ndarray":
    """Return a view that code of one's own cannot write to.

    Examples
    --------
    >>> import numpy as np
    >>> read_only(np.zeros(2)).flags.writeable
    False
    """
    view = array.view()
    view.flags.writeable = False
    return view


@contextmanager
def _told(file: str, what: str = "") -> Iterator[None]:
    """Tell of an error in a file of one's own by the lines of the file that led to it.

    The folder, numpy's answer to overflows and the filters of warnings are afterwards as before.
    """
    import numpy as np

    try:
        with chdir("."), np.errstate(), warnings.catch_warnings():
            yield
    except (UserError, MemoryError, KeyboardInterrupt):
        raise
    except BaseException as error:
        steps = [s for s in traceback.extract_tb(error.__traceback__) if s.filename == file]
        lines = list(dict.fromkeys(f"{file}:{step.lineno}" for step in steps))
        at = " > ".join(lines if len(lines) < 4 else [lines[0], "...", lines[-1]]) or file
        try:
            said = " ".join(str(error).split())
        except Exception:  # an exception of one's own may have no text
            said = "(it has no text)"
        raise UserError(f"{at}: {what}{type(error).__name__}: {said}") from error
