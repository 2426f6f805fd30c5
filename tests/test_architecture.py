"""The shape of the package: arrows, confinement, sizes, settings, chapters."""

import ast
import importlib
import inspect
import re
from functools import cache
from pathlib import Path

import pytest

import flashlib

PACKAGE = Path(flashlib.__file__).parent
FILES = sorted(path for path in PACKAGE.rglob("*.py"))

# A module imports from its own layer or from layers before it.
LAYERS = (
    {"errors"},
    {"chains", "cores", "forks", "products", "row", "validation", "integer_arrays"},
    {
        *("problem", "decode_problem", "varlen_problem", "layout", "output"),
        *("online_softmax", "traffic"),
    },
    {"masks", "scores"},
    {"reference"},
    {"kernels", "cache"},
    {"backends"},
    {"attention", "decode", "varlen"},
    {"machine"},
    {"programs"},
    {"model", "testing"},
    {"contract"},
    {"experiments"},
    {"measure", "mutants"},
    {"plots"},
    {"exercises"},
    {"ledger", "widgets"},
)
# These stand beside the core and see no more of the package than this.
BESIDE = {"machine": {"errors"}, "programs": {"errors", "machine"}, "plots": set()}
# What each of these may be imported by; everything else must do without it.
CONFINED = {
    "numba": "kernels",
    "llvmlite": "kernels",
    "matplotlib": "plots",
    "ipywidgets": "widgets",
    "IPython": "widgets",
}
CPU_SIDE, MACHINE_SIDE = {"kernels", "cache", "backends"}, {"machine", "programs"}
CHAPTER = re.compile(r"\((chapters? \d+(, \d+)*|book)\)\.?$")


def part(path):
    """The module or subpackage right under flashlib that a file belongs to."""
    first = path.relative_to(PACKAGE).parts[0]
    return first.removesuffix(".py")


def name_of(path):
    return str(path.relative_to(PACKAGE))


@cache
def tree(path):
    return ast.parse(path.read_text())


def imports(path):
    """Yield the absolute name of every module that a file imports."""
    package = path.relative_to(PACKAGE.parent).parent.parts
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = ".".join(package[: len(package) - node.level + 1])
            module = node.module or ""
            full = f"{base}.{module}".strip(".") if node.level else module
            yield full
            if full in ("flashlib", base):
                yield from (f"{full}.{alias.name}" for alias in node.names)


def own_parts(path):
    """Yield the parts of flashlib that a file imports."""
    for name in imports(path):
        root, _, rest = name.partition(".")
        if root == "flashlib" and rest:
            yield rest.partition(".")[0]


every_file = pytest.mark.parametrize("path", FILES, ids=name_of)


def test_the_files_are_found():
    assert {"attention.py", "kernels/scalar.py"} <= {name_of(path) for path in FILES}
    assert "reference" in set(own_parts(PACKAGE / "backends" / "base.py"))
    assert "numba" in set(imports(PACKAGE / "kernels" / "jit.py"))


@every_file
def test_arrows_point_downwards(path):
    rank = {name: i for i, layer in enumerate(LAYERS) for name in layer}
    here = part(path)
    if here in rank:
        above = {n for n in own_parts(path) if rank.get(n, len(LAYERS)) > rank[here]}
        assert not above, f"{name_of(path)} imports {sorted(above)}, which lie above it"


@every_file
def test_what_stands_beside_the_core_stays_there(path):
    if part(path) in BESIDE:
        seen = set(own_parts(path)) - {part(path)}
        assert seen <= BESIDE[part(path)], f"{name_of(path)} imports {sorted(seen)}"


def test_every_part_of_the_package_has_its_layer():
    ranked = [name for layer in LAYERS for name in layer]
    assert sorted(ranked) == sorted({part(path) for path in FILES} - {"__init__"})


def test_the_design_page_shows_these_layers():
    text = (PACKAGE.parent / "DESIGN.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (\d+) \| (.*?) \|", text, re.MULTILINE)
    assert [int(number) for number, _ in rows] == list(range(1, len(LAYERS) + 1))
    assert [set(re.findall(r"`(\w+)`", names)) for _, names in rows] == list(LAYERS)


def test_no_import_goes_in_a_circle():
    # Inside a layer the order is free, but there has to be one.
    edges = {}
    for path in FILES:
        if part(path) != "__init__":
            edges.setdefault(part(path), set()).update(set(own_parts(path)))
    done = set()

    def visit(name, trail):
        assert name not in trail, " -> ".join((*trail, name))
        if name not in done:
            for other in edges.get(name, set()) - {name}:
                visit(other, (*trail, name))
            done.add(name)

    for name in edges:
        visit(name, ())


@every_file
def test_the_two_sides_do_not_meet(path):
    here, parts = part(path), set(own_parts(path))
    if here in CPU_SIDE:
        assert not parts & MACHINE_SIDE
    if here in MACHINE_SIDE:
        assert not parts & CPU_SIDE


@every_file
def test_heavy_packages_are_confined(path):
    for name in imports(path):
        home = CONFINED.get(name.partition(".")[0])
        assert home in (None, part(path)), f"{name_of(path)} imports {name}"


@every_file
def test_nothing_imports_notebooks_or_tests(path):
    roots = {name.partition(".")[0] for name in imports(path)}
    assert not roots & {"tests", "notebooks", "pytest"}


@every_file
def test_the_first_line_names_its_chapters(path):
    doc = ast.get_docstring(tree(path))
    assert doc, "a module needs a docstring"
    assert CHAPTER.search(doc.splitlines()[0]), doc.splitlines()[0]


@every_file
def test_modules_are_small(path):
    assert len(path.read_text().splitlines()) <= 300
    assert path.name != "utils.py"


def body_length(function):
    """Lines of a function below its docstring, blank lines and comments included."""
    body = function.body
    if ast.get_docstring(function) is not None:
        body = body[1:]
    return body[-1].end_lineno - body[0].lineno + 1 if body else 0


@every_file
def test_functions_are_short(path):
    limit = 45 if part(path) == "kernels" else 30
    long = {
        node.name: body_length(node)
        for node in ast.walk(tree(path))
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
        and body_length(node) > limit
    }
    assert not long, f"{name_of(path)}: {long}, limit {limit}"


COMPILERS = {
    "jit",
    "njit",
    "vectorize",
    "guvectorize",
    "stencil",
    "cfunc",
    "generated_jit",
}


def called_name(node):
    function = node.func if isinstance(node, ast.Call) else node
    return getattr(function, "attr", getattr(function, "id", None))


@every_file
def test_one_settings_dict_compiles_everything(path):
    roots = {module.partition(".")[0] for module in imports(path)}
    if "numba" not in roots and part(path) != "kernels":
        return  # another library's compiler may have the same name
    uses = [
        node
        for node in ast.walk(tree(path))
        if isinstance(node, (ast.Attribute, ast.Name))
        and called_name(node) in COMPILERS
    ]
    if name_of(path) == "kernels/jit.py":
        calls = [
            node
            for node in ast.walk(tree(path))
            if isinstance(node, ast.Call) and called_name(node) in COMPILERS
        ]
        assert calls and len(calls) == len(uses)
        for call in calls:
            spread = [keyword for keyword in call.keywords if keyword.arg is None]
            assert spread and "settings" in ast.unparse(spread[0].value).lower()
            assert "fastmath" not in {keyword.arg for keyword in call.keywords}
    else:
        assert not uses, f"{name_of(path)} compiles without the settings"


@every_file
def test_fast_math_is_never_all_of_it(path):
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.keyword) and node.arg == "fastmath":
            assert name_of(path) == "kernels/jit.py"
    if name_of(path) == "kernels/jit.py":
        settings = next(
            ast.literal_eval(node.value)
            for node in tree(path).body
            if isinstance(node, ast.Assign) and node.targets[0].id == "SETTINGS"
        )
        assert settings["fastmath"] == {"contract", "reassoc", "nsz", "arcp", "afn"}
        assert settings["error_model"] == "numpy" and settings["cache"] is True
        assert settings["nogil"] is True


@every_file
def test_nothing_is_left_to_do(path):
    assert not re.search(r"\b(TO" r"DO|FIX" r"ME|XXX)\b", path.read_text())


# What a chapter tries, checks, times or draws, and the compiled loops. Of these only
# what a package hands out is public, and the loop that the book reads line by line.
INNER = {
    "contract",
    "exercises",
    "experiments",
    "kernels",
    "ledger",
    "measure",
    "mutants",
    "plots",
    "widgets",
}
# An empty package has nothing to list.
LISTED = [path for path in FILES if len(tree(path).body) > 1]


def is_front(path):
    """Whether a file is what a package right under flashlib hands out."""
    return path.name == "__init__.py" and path.parent.parent == PACKAGE


PUBLIC = ["kernels/scalar.py"] + [
    name_of(path)
    for path in LISTED
    if is_front(path) or part(path) not in {*INNER, *MACHINE_SIDE, "model"}
]
MODEL = [name_of(path) for path in LISTED if part(path) == "model"]


def test_the_public_layer_is_found():
    hidden = {"experiments/head_costs.py", "plots/svg.py", "machine/tile.py"}
    handed_out = {"__init__.py", "backends/tracing.py", "ledger/__init__.py"}
    assert handed_out <= set(PUBLIC) and not hidden & set(PUBLIC)
    assert "model/qwen3.py" in MODEL


@pytest.mark.parametrize("name", PUBLIC)
def test_the_public_layer_is_documented_and_annotated(name):
    for node in ast.walk(tree(PACKAGE / name)):
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
            assert ast.get_docstring(node), node.name
        if isinstance(node, ast.FunctionDef) and not node.name.startswith("_"):
            assert ast.get_docstring(node), node.name
            if not name.startswith("kernels"):
                annotated(node)


MACHINE = [name_of(path) for path in LISTED if part(path) in MACHINE_SIDE]


def public_members(node):
    """Yield public classes, functions and methods, not what a function holds."""
    for member in node.body:
        if isinstance(member, (ast.ClassDef, ast.FunctionDef)):
            if not member.name.startswith("_"):
                yield member
                if isinstance(member, ast.ClassDef):
                    yield from public_members(member)


@pytest.mark.parametrize("name", MACHINE)
def test_the_machine_and_its_programs_are_documented_and_annotated(name):
    for member in public_members(tree(PACKAGE / name)):
        assert ast.get_docstring(member), member.name
        if isinstance(member, ast.FunctionDef):
            annotated(member)


@pytest.mark.parametrize("name", MODEL)
def test_the_model_is_annotated(name):
    for member in public_members(tree(PACKAGE / name)):
        if isinstance(member, ast.FunctionDef):
            annotated(member)


# Here a decorator or a base class may have the words for a function.
BOOKISH = [p for p in FILES if part(p) in ("contract", "mutants", "exercises", "model")]


@pytest.mark.parametrize("path", BOOKISH, ids=name_of)
def test_checks_mutants_exercises_and_the_model_are_documented(path):
    module = importlib.import_module(
        ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts)
    )
    assert not undocumented(vars(module), module.__name__)


def undocumented(members, home):
    """Names of public functions and classes of a module without a word on them."""
    found = []
    for name, member in members.items():
        own = getattr(member, "__module__", None) == home and not name.startswith("_")
        if own and (inspect.isfunction(member) or inspect.isclass(member)):
            found += [] if inspect.getdoc(member) else [name]
            if inspect.isclass(member):
                owned = {n: getattr(member, n) for n in vars(member)}
                silent = {n for n in owned if inspect.getdoc(owned[n]) is None}
                found += [n for n in undocumented(owned, home) if n in silent]
    return found


def annotated(function):
    signature = function.args
    named = [*signature.posonlyargs, *signature.args, *signature.kwonlyargs]
    missing = [a.arg for a in named if a.annotation is None]
    assert set(missing) <= {"self", "cls"}, (function.name, missing)
    assert function.returns is not None, function.name


@pytest.mark.parametrize("name", [*PUBLIC, *MODEL, *MACHINE])
def test_public_lists_name_what_is_there(name):
    module = tree(PACKAGE / name)
    lists = [
        ast.literal_eval(node.value)
        for node in module.body
        if isinstance(node, ast.Assign)
        and getattr(node.targets[0], "id", None) == "__all__"
    ]
    assert len(lists) == 1 and lists[0] == sorted(lists[0], key=order)


def order(name):
    """Constants, then classes, then functions, as ruff sorts `__all__`."""
    kind = 0 if name.isupper() else 1 if name[0].isupper() else 2
    return kind, name
