"""Show the source of a packaged function, so page and package agree (book)."""

import ast
import inspect
import textwrap
from collections.abc import Callable

from IPython.display import Markdown


def source(function: Callable, docstring: bool = False) -> Markdown:
    """Return the source of a function or class as a highlighted block.

    Parameters
    ----------
    function : callable
        A plain function, a class, or a jitted function (its Python source is shown).
    docstring : bool
        Keep the docstring; a page usually says the same in its own words.
    """
    plain = getattr(function, "py_func", function)
    lines = textwrap.dedent(inspect.getsource(plain))
    if not docstring and plain.__doc__:
        lines = _without_docstring(lines)
    return Markdown(f"```python\n{lines.rstrip()}\n```")


def _without_docstring(code: str) -> str:
    """Drop the docstring of the first definition in `code`."""
    node = ast.parse(code).body[0]
    first = node.body[0]
    lines = code.splitlines()
    del lines[first.lineno - 1 : first.end_lineno]
    if first.lineno - 1 < len(lines) and not lines[first.lineno - 1].strip():
        del lines[first.lineno - 1]
    return "\n".join(lines)
