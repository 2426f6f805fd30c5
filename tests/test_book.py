"""The book as a whole: its pages, its colors, its versions, its map."""

import re
import tomllib
from types import SimpleNamespace

import chapter_map
import chapter_numbers
import pytest
import yaml
from docutils import nodes
from packaging.requirements import Requirement
from project import ROOT


def read(name):
    return (ROOT / name).read_text(encoding="utf-8")


def pages():
    toc = yaml.safe_load(read("_toc.yml"))
    return [toc["root"], *(c["file"] for p in toc["parts"] for c in p["chapters"])]


@pytest.mark.parametrize("page", pages())
def test_page_exists_once(page):
    found = [s for s in (".md", ".ipynb") if (ROOT / (page + s)).is_file()]
    assert len(found) == 1


def test_every_page_is_in_the_table_of_contents():
    sources = [*ROOT.glob("book/*.md"), *ROOT.glob("notebooks/*.ipynb")]
    found = {p.relative_to(ROOT).with_suffix("").as_posix() for p in sources}
    assert found == set(pages())


def test_repository_address_is_said_in_one_place():
    url = yaml.safe_load(read("_config.yml"))["repository"]["url"]
    sources = [*ROOT.glob("book/*.md"), *ROOT.glob("notebooks/*.ipynb")]
    sources += [*ROOT.glob("*.md"), *ROOT.glob("flashlib/**/*.py")]
    assert [p.name for p in sources if url in p.read_text(encoding="utf-8")] == []


# --- versions ---------------------------------------------------------------------


def requirements():
    lines = read("requirements.txt").splitlines()
    yield from (Requirement(x) for x in lines if x and not x.startswith("#"))
    project = tomllib.loads(read("pyproject.toml"))["project"]
    yield from map(Requirement, project["dependencies"])
    for extra in project["optional-dependencies"].values():
        yield from map(Requirement, extra)


def constraints():
    found = {}
    for line in read("constraints.txt").splitlines():
        if not line.startswith("#"):
            pinned = Requirement(line)
            (version,) = (s.version for s in pinned.specifier)
            found.setdefault(pinned.name, []).append(version)
    return found


@pytest.mark.parametrize("wanted", list(requirements()), ids=lambda r: r.name)
def test_exact_versions_lie_within_the_bounds(wanted):
    pinned = constraints()[wanted.name.lower().replace("_", "-")]
    assert all(wanted.specifier.contains(version) for version in pinned)


def test_every_requirement_is_bounded_above():
    for wanted in requirements():
        operators = {s.operator for s in wanted.specifier}
        assert operators & {"<", "=="}, wanted


# --- colors -----------------------------------------------------------------------


def palettes():
    """Return {theme: {name: color}} of the style sheet."""
    css = read("book/assets/site/custom.css")
    blocks = re.findall(r'html\[data-theme="(\w+)"\] \{(.*?)\}', css, re.S)
    return {
        theme: dict(re.findall(r"--fl-([a-z]+): (#[0-9a-f]{6})", block))
        for theme, block in blocks
    }


def luminance(color):
    def linear(channel):
        value = int(channel, 16) / 255
        return value / 12.92 if value <= 0.04045 else ((value + 0.055) / 1.055) ** 2.4

    red, green, blue = (linear(color[i : i + 2]) for i in (1, 3, 5))
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one, other):
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def test_both_themes_define_the_same_colors():
    light, dark = palettes()["light"], palettes()["dark"]
    assert light.keys() == dark.keys()
    source = read("flashlib/plots/svg.py")
    assert set(re.findall(r"var\(--fl-(\w+)", source)) <= light.keys()


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_colors_can_be_read_as_text_on_the_page(theme):
    colors = palettes()[theme]
    for name in colors.keys() - {"paper", "faint"}:
        assert contrast(colors[name], colors["paper"]) >= 4.5, name


# --- chapter numbers ------------------------------------------------------------------


def test_a_chapter_is_numbered_as_its_file():
    """Chapter 15, third in the contents, is 15 in its sections, menu and title."""
    toc, title = nodes.reference(secnumber=[3, 1]), nodes.title(secnumber=[3])
    env = SimpleNamespace(
        toc_secnumbers={"notebooks/15_x": {"": (3,), "#a": (3, 1), "#b": ()}},
        tocs={"notebooks/15_x": nodes.bullet_list("", toc)},
        titles={"notebooks/15_x": title},
    )
    chapter_numbers.renumber(env, "notebooks/15_x")
    assert env.toc_secnumbers["notebooks/15_x"] == {"": (15,), "#a": (15, 1), "#b": ()}
    assert toc["secnumber"] == [15, 1]
    assert title["secnumber"] == [15]
    assert chapter_numbers.chapter_of("book/notation") is None


# --- the map of modules and chapters ------------------------------------------------


def test_every_module_names_its_chapters():
    named = {module: words for module, words, _ in chapter_map.read_modules(ROOT)}
    lines = {
        chapter_map.module_name(path, ROOT): chapter_map.first_line(path)
        for path in ROOT.glob("flashlib/**/*.py")
    }
    assert [
        m for m, line in lines.items() if not chapter_map.CHAPTERS.search(line)
    ] == []
    assert named.keys() == lines.keys()


def test_every_written_chapter_has_a_module():
    covered = {n for _, _, numbers in chapter_map.read_modules(ROOT) for n in numbers}
    assert chapter_map.read_chapters(ROOT).keys() - {0} <= covered


def test_backticks_of_a_docstring_become_code():
    parts = chapter_map.marked("``whole`` and `part` of it")
    assert [(type(x).__name__, x.astext()) for x in parts] == [
        ("literal", "whole"),
        ("Text", " and "),
        ("literal", "part"),
        ("Text", " of it"),
    ]


def test_chapters_are_read_from_a_docstring(tmp_path):
    package = tmp_path / "flashlib"
    package.mkdir()
    (package / "__init__.py").write_text('"""The package (book)."""')
    (package / "one.py").write_text('"""Do one thing (chapters 4, 15)."""')
    (package / "two.py").write_text('"""Do (or not) another (chapter 2)."""')
    assert list(chapter_map.read_modules(tmp_path)) == [
        ("flashlib", "The package", []),
        ("flashlib.one", "Do one thing", [4, 15]),
        ("flashlib.two", "Do (or not) another", [2]),
    ]
