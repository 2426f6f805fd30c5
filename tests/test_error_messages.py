"""One form for every message: *argument has value; expected ...; rule; remedy*.

What the contract, the museum and the judge of results say of a wrong result has the
first half of it, *has ...; expected ...*: the rule stands in the name of the check.
What a checker says to a learner is a plain sentence in the learner's words, as "the
answer is 5; expected a list of 6", and is not held to the form.
"""

import ast
from pathlib import Path

import pytest

import flashlib
from flashlib import errors

PACKAGE = Path(flashlib.__file__).parent
# What says no in words of its own, and why.
OTHER_WORDS = {
    "exercises/ch12.py": "a reader's gate passes on the reasons that it was given",
}
FILES = sorted(
    path
    for path in PACKAGE.rglob("*.py")
    if path.relative_to(PACKAGE).as_posix() not in OTHER_WORDS
)


def text_of(node):
    """The words of a string or f-string, with {} for what is filled in."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        parts = (getattr(value, "value", None) for value in node.values)
        return "".join(part if isinstance(part, str) else "{}" for part in parts)
    return None


def raised_names(tree):
    """Names that stand for errors: the classes, and the parameters that hold one."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call):
            name = getattr(node.exc.func, "id", "")
            if name.islower() and name.isidentifier():
                yield name


def messages(path):
    """Yield line and text of every message that a file gives to one of our errors."""
    tree = ast.parse(path.read_text())
    names = {*errors.__all__, *raised_names(tree)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            name = getattr(node.func, "attr", getattr(node.func, "id", ""))
            if name in names:
                text = text_of(node.args[0]) if node.args else None
                if text is not None:
                    yield node.lineno, text


# Where an AssertionError speaks of a wrong result.
JUDGES = ("contract", "mutants", "testing")
JUDGING = [path for path in FILES if path.relative_to(PACKAGE).parts[0] in JUDGES]


def findings(path):
    """Yield line and text of what a file says of wrong results."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Assert) and node.msg is not None:
            yield node.lineno, text_of(node.msg)
        elif isinstance(node, ast.Call):
            if getattr(node.func, "id", "") == "AssertionError":
                yield node.lineno, text_of(node.args[0])


def in_form(text):
    """Whether a text says what has which value, and what was expected."""
    head, expected, _ = text.partition("; expected")
    return bool(expected) and (" has " in head or " have " in head)


def faults(path):
    """Lines whose message has another form."""
    for line, text in messages(path):
        if not in_form(text) or text.count("; ") < 2 or "\n" in text:
            yield line, text


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(PACKAGE)))
def test_a_message_says_what_has_which_value_and_what_was_expected(path):
    assert not list(faults(path))


@pytest.mark.parametrize("path", JUDGING, ids=lambda p: str(p.relative_to(PACKAGE)))
def test_a_wrong_result_is_told_with_its_value_and_what_was_expected(path):
    bad = [(line, text) for line, text in findings(path) if not in_form(text or "")]
    assert not bad


def test_the_findings_are_found():
    found = [text for path in JUDGING for _, text in findings(path)]
    assert len(found) >= 15
    assert any(text.startswith("{}{} has {} at flat index {}") for text in found)
    assert in_form("out has 3; expected 4") and not in_form("out is 3; expected 4")


def test_the_messages_are_found():
    found = [text for path in FILES for _, text in messages(path)]
    assert len(found) >= 300
    assert any(text.startswith("{} has dtype {}; expected ") for text in found)
    assert any(text.startswith("q and k have head_dim") for text in found)


def test_another_form_is_seen(tmp_path, monkeypatch):
    monkeypatch.setitem(globals(), "PACKAGE", tmp_path)
    path = tmp_path / "new.py"
    path.write_text(
        'raise MachineError(f"{n} is {x}; expected 1; a rule")\n'
        'raise MachineError("n has 2; expected 1")\n'
        'raise error("n has 2")\n'
        "if n > 1:\n"
        '    raise ShapeError("n has 2; wanted 1; a rule")\n'
        'raise MachineError("n has 2; expected 1; a rule; a remedy")\n'
    )
    assert [line for line, _ in faults(path)] == [1, 2, 3, 5]


def test_what_uses_other_words_still_does():
    for name in OTHER_WORDS:
        assert list(faults(PACKAGE / name)), f"{name} needs no exception any more"
