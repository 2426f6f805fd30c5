"""Every symbol of a numbered equation stands on the notation page."""

import json
import re

import pytest
import yaml
from project import ROOT

EQUATION = re.compile(r"\$\$\n(.*?)\n\$\$ \((.*?)\)", re.S)
COMMAND = re.compile(r"\\[A-Za-z]+")
# what arranges a formula or names a function, and is no symbol of its own
ARRANGES = set(
    r"""
    \approx \begin \end \Bigl \Bigr \bigl \bigr \bmod \blacksquare \cdot \cup \frac
    \hat \in \infty \iff \Longleftrightarrow \ldots \le \ge \ll \gg \left \right \ln
    \cdots \mapsto
    \lceil \rceil \lfloor \rfloor \lVert \rVert \mathrm \max \min \operatorname \pm
    \quad \qquad \sqrt \sum \text \textstyle \texttt \times \to \top \underbrace
    """.split()
)


def chapters():
    toc = yaml.safe_load((ROOT / "_toc.yml").read_text(encoding="utf-8"))
    files = [chapter["file"] for part in toc["parts"] for chapter in part["chapters"]]
    return [name for name in files if re.match(r"notebooks/\d\d_", name)]


def equations(name):
    """Yield the label and the formula of each numbered equation of a chapter."""
    notebook = json.loads((ROOT / f"{name}.ipynb").read_text(encoding="utf-8"))
    for cell in notebook["cells"]:
        if cell["cell_type"] == "markdown":
            for formula, label in EQUATION.findall("".join(cell["source"])):
                yield label, formula


@pytest.mark.parametrize("name", chapters())
def test_symbols_of_equations_are_on_the_notation_page(name):
    notation = (ROOT / "book/notation.md").read_text(encoding="utf-8")
    known = set(COMMAND.findall(notation))
    for label, formula in equations(name):
        symbols = set(COMMAND.findall(formula)) - ARRANGES
        assert symbols <= known, (label, symbols - known)


def test_equations_are_found():
    assert all(list(equations(name)) for name in chapters())
