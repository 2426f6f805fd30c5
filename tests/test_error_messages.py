"""One form for every message: *argument has value; expected ...; rule; remedy*."""

import ast
from pathlib import Path

import pytest

import flashlib
from flashlib import errors

PACKAGE = Path(flashlib.__file__).parent
# A whole kernel refuses through this function of flashlib.programs.refusals.
REFUSE = "refuse"
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
    names = {*errors.__all__, *raised_names(tree), REFUSE}
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            name = getattr(node.func, "attr", getattr(node.func, "id", ""))
            if name in names:
                place = 1 if name == REFUSE else 0
                text = text_of(node.args[place]) if len(node.args) > place else None
                if text is not None:
                    yield node.lineno, text


def faults(path):
    """Lines whose message has another form."""
    least = 2 if path.relative_to(PACKAGE).parts[0] in ("machine", "programs") else 1
    for line, text in messages(path):
        head, expected, _ = text.partition("; expected")
        verb = " has " in head or " have " in head
        if not (verb and expected) or text.count("; ") < least or "\n" in text:
            yield line, text


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(PACKAGE)))
def test_a_message_says_what_has_which_value_and_what_was_expected(path):
    assert not list(faults(path))


def test_the_messages_are_found():
    found = [text for path in FILES for _, text in messages(path)]
    assert len(found) >= 300
    assert any(text.startswith("{} has dtype {}; expected ") for text in found)
    assert any(text.startswith("q and k have head_dim") for text in found)


def test_another_form_is_seen(tmp_path, monkeypatch):
    monkeypatch.setitem(globals(), "PACKAGE", tmp_path)
    path = tmp_path / "machine" / "new.py"
    path.parent.mkdir()
    path.write_text(
        'raise MachineError(f"{n} is {x}; expected 1; a rule")\n'
        'raise MachineError("n has 2; expected 1")\n'
        'raise error("n has 2")\n'
        'refuse(n > 1, "n has 2; wanted 1; a rule")\n'
        'raise MachineError("n has 2; expected 1; a rule; a remedy")\n'
    )
    assert [line for line, _ in faults(path)] == [1, 2, 3, 4]


def test_what_uses_other_words_still_does():
    for name in OTHER_WORDS:
        assert list(faults(PACKAGE / name)), f"{name} needs no exception any more"
