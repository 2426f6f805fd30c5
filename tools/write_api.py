"""Write book/api.md, the page that lists every module of the package.

    .venv/bin/python tools/write_api.py            # write it
    .venv/bin/python tools/write_api.py --check    # only say what would change

A new module falls into the first section below with a pattern that matches it. The
page is written from the tree: change a title or an order here, not there.
"""

import importlib
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))
PAGE = ROOT / "book" / "api.md"
DESCRIPTION = (
    "Every module of flashlib, layer by layer, with its functions and classes."
)
HEAD = f"""\
---
myst:
  html_meta:
    description: {DESCRIPTION}
---

# The package

`import flashlib` gives the public layer and loads NumPy only.
Everything below it is grouped by layer.
The first line of each module ends with the chapters that explain it;
the [chapter map](chapter_map.md) has them in one table.
"""
# What a reader looks for first; other functions follow in the order of their names.
FIRST = (
    "flash_attention",
    "flash_attention_varlen",
    "flash_attention_decode",
    "flash_attention_paged",
    "materialized_attention",
    "merge_states",
    "split_heads",
    "merge_heads",
)
# Title, sentence, patterns of modules shown with their members, of modules without.
SECTIONS = (
    (
        "What is computed",
        "A problem is stated and validated once: sizes, the band of keys that each "
        "row may see, scale, softcap, masks.",
        "problem batches validation layout masks",
        "",
    ),
    (
        "The algebra and the oracle",
        "The state of a softmax and its merge, the textbook computation that "
        "everything is compared with, and the arithmetic of bytes and flops.",
        "output online_softmax reference traffic",
        "row scores products chains cores",
    ),
    (
        "Attention",
        "The entry points: validate, choose, call.",
        "attention varlen decode",
        "",
    ),
    (
        "Backends",
        "Each answers every call, or says no with a reason.",
        "backends/*",
        "",
    ),
    ("Caches", "Where keys and values are kept between calls.", "cache/*", ""),
    ("Kernels", "The loops. Nothing here validates.", "kernels/*", ""),
    (
        "The machine",
        "A simulated accelerator with 128 partitions and programs for it, module by "
        "module.",
        "",
        "machine/**/* programs/**/*",
    ),
    (
        "The model",
        "A small language model over any backend.",
        "",
        "model/**/*",
    ),
    (
        "Instruments",
        "Inputs, oracle and errors in units; the contract as runnable checks; the "
        "museum of wrong kernels; measurements.",
        "testing measure/**/* contract/__init__ contract/check contract/run "
        "mutants/__init__ mutants/mutant mutants/loop mutants/call",
        "contract/* mutants/*",
    ),
    (
        "The book's own machinery",
        "Figures that move, pictures, exercises and the ledger of claims.",
        "widgets/figure widgets/source widgets/catalogue plots/__init__ plots/svg "
        "exercises/__init__ exercises/exercise exercises/guard exercises/catalogue "
        "ledger/__init__ ledger/rows",
        "widgets/* plots/* exercises/**/* ledger/**/*",
    ),
)


def modules(patterns, taken):
    """Yield the dotted names that space-separated patterns match, each name once."""
    for pattern in patterns.split():
        for path in sorted((ROOT / "flashlib").glob(f"{pattern}.py")):
            parts = path.relative_to(ROOT).with_suffix("").parts
            name = ".".join(parts).removesuffix(".__init__")
            if name not in taken:
                taken.add(name)
                yield name


def block(name, members, exported):
    """Return the entry of one module; what flashlib exports stands at the top."""
    lines = [f"### `{name}`\n", "```{eval-rst}", f".. automodule:: {name}"]
    if members:
        module = importlib.import_module(name)
        public = [getattr(module, n) for n in getattr(module, "__all__", ())]
        lines.append("   :members:")
        # re-exported names are listed where they are defined
        if any(getattr(entry, "__module__", name) != name for entry in public):
            lines.append("   :ignore-module-all:")
        if own := [n for n, home in exported.items() if home == name]:
            lines.append(f"   :exclude-members: {', '.join(own)}")
    return "\n".join([*lines, "```\n"])


def public_layer(package):
    """Return the sections on what `import flashlib` gives, errors apart."""
    names = {n: getattr(package, n) for n in package.__all__}
    classes = {n for n, entry in names.items() if isinstance(entry, type)}
    errors = {n for n in classes if issubclass(names[n], Exception)}
    # the root of the tree first
    tree = sorted(errors, key=lambda n: (names[n].__base__ is not Exception, n))
    functions = dict.fromkeys((*FIRST, *sorted(names.keys() - classes)))
    listed = [f".. autofunction:: flashlib.{n}\n" for n in functions]
    listed += [
        f".. autoclass:: flashlib.{n}\n   :members:\n"
        for n in names
        if n in classes - errors
    ]
    raised = [f".. autoexception:: flashlib.{n}\n" for n in tree]
    return (
        "## The public layer\n\n```{eval-rst}\n.. automodule:: flashlib\n\n"
        + "\n".join(listed).rstrip()
        + "\n```\n\n## What may go wrong\n\nOne tree of exceptions, each of them also "
        "a built-in one.\n\n### `flashlib.errors`\n\n```{eval-rst}\n.. automodule:: "
        "flashlib.errors\n\n" + "\n".join(raised).rstrip() + "\n```\n"
    )


def page():
    """Return the page and the modules that no section takes."""
    package = importlib.import_module("flashlib")
    exported = {n: getattr(package, n).__module__ for n in package.__all__}
    taken = {"flashlib", "flashlib.errors"}
    # members first: a pattern without them takes what is left
    shown = [list(modules(section[2], taken)) for section in SECTIONS]
    plain = [list(modules(section[3], taken)) for section in SECTIONS]
    text = [HEAD, public_layer(package)]
    for (title, words, *_), full, bare in zip(SECTIONS, shown, plain, strict=True):
        text.append(f"## {title}\n\n{words}\n")
        text += [block(name, True, exported) for name in full]
        text += [block(name, False, exported) for name in bare]
    return "\n".join(text), list(modules("**/*", taken))


def main(arguments):
    """Write or compare the page; return what kept it from being right."""
    text, homeless = page()
    if homeless:
        return f"no section takes {', '.join(homeless)}; add a pattern to SECTIONS"
    if arguments != ["--check"]:
        PAGE.write_text(text, encoding="utf-8")
        return 0
    same = PAGE.exists() and PAGE.read_text(encoding="utf-8") == text
    return (
        0 if same else "book/api.md is not what the tree says; run tools/write_api.py"
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
