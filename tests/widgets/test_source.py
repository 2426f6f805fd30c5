"""Source as a page shows it: without its docstring, and never a compiled wrapper."""

from flashlib.widgets import source


def documented(x):
    """Say nothing."""

    return x


class Documented:
    """Say nothing."""

    field = 1


class Jitted:
    """Stand in for a dispatcher, whose Python source hangs on `py_func`."""

    py_func = staticmethod(documented)


def shown(thing, **options):
    return source(thing, **options).data


def test_source_leaves_the_docstring_out():
    assert shown(documented) == "```python\ndef documented(x):\n    return x\n```"
    assert shown(Documented) == "```python\nclass Documented:\n    field = 1\n```"


def test_source_keeps_the_docstring_on_demand():
    assert '"""Say nothing."""' in shown(documented, docstring=True)


def test_source_of_a_jitted_function_is_its_python():
    assert shown(Jitted) == shown(documented)
