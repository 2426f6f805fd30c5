"""Write book/api*.md, the pages that list every module of the package.

    .venv/bin/python tools/write_api.py            # write them
    .venv/bin/python tools/write_api.py --check    # only say what would change

A new module falls into the first section below with a pattern that matches it. The
pages are written from the tree: change a title or an order here, not there.
"""

import importlib
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))
BOOK = ROOT / "book"
HEAD = """\
---
myst:
  html_meta:
    description: {description}
---

# {title}

{words}
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
CORE = (
    (
        "What is computed",
        "A problem is stated and validated once: sizes, the band of keys that each "
        "row may see, scale, softcap, masks.",
        "problem decode_problem varlen_problem validation integer_arrays layout masks",
        "",
    ),
    (
        "The algebra and the oracle",
        "The state of a softmax and its merge, the textbook computation that "
        "everything is compared with, and the arithmetic of bytes and flops.",
        "output online_softmax reference traffic",
        "row scores products chains cores forks",
    ),
    (
        "Attention",
        "The entry points: validate, choose, call.",
        "attention varlen decode",
        "",
    ),
)
ENGINE = (
    (
        "Backends",
        "Each answers every call, or says no with a reason.",
        "backends/*",
        "",
    ),
    ("Caches", "Where keys and values are kept between calls.", "cache/*", ""),
    ("Kernels", "The loops. Nothing here validates.", "kernels/*", ""),
)
MACHINE = (
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
)
INSTRUMENTS = (
    (
        "Instruments",
        "Inputs, oracle and errors in units; the contract as runnable checks; the "
        "museum of wrong kernels; counted experiments and timed measurements.",
        "testing testing/**/* experiments/* measure/**/* contract/__init__ "
        "contract/check contract/run mutants/__init__ mutants/mutant "
        "mutants/loop/plain mutants/loop/call",
        "contract/* mutants/**/*",
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
# File, title, description, first sentences, sections; the public layer opens the first.
PAGES = (
    (
        "api",
        "The package",
        "What import flashlib gives, its errors, and the modules of the core.",
        """\
`import flashlib` gives the public layer and loads NumPy only.
Everything below it is grouped by layer, on four pages: this one,
[the engine](api_engine.md), [the machine and the model](api_machine.md) and
[instruments](api_instruments.md).
The first line of each module ends with the chapters that explain it;
the [chapter map](chapter_map.md) has them in one table.""",
        CORE,
    ),
    (
        "api_engine",
        "The engine, module by module",
        "Backends, caches and kernels of flashlib.",
        "What runs attention on a processor. "
        "The [public layer](api.md) says how it is called.",
        ENGINE,
    ),
    (
        "api_machine",
        "The machine and the model, module by module",
        "The simulated accelerator of flashlib, its programs, and the language model.",
        "Part III runs on the machine; chapters 10 and 13 run the model. The "
        "instructions of the machine have a [page of their own]"
        "(../notebooks/isa_reference.ipynb).",
        MACHINE,
    ),
    (
        "api_instruments",
        "Instruments, module by module",
        "What flashlib is tested, measured, drawn and taught with.",
        "Nothing here takes part in a computation.",
        INSTRUMENTS,
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


def pages():
    """Return the text of every page, and the modules that no section takes."""
    package = importlib.import_module("flashlib")
    exported = {n: getattr(package, n).__module__ for n in package.__all__}
    taken = {"flashlib", "flashlib.errors"}
    sections = [section for *_, own in PAGES for section in own]
    # members first: a pattern without them takes what is left
    shown = {title: list(modules(full, taken)) for title, _, full, _ in sections}
    plain = {title: list(modules(bare, taken)) for title, _, _, bare in sections}
    texts = {}
    for number, (name, title, description, words, own) in enumerate(PAGES):
        text = [HEAD.format(title=title, description=description, words=words)]
        if number == 0:
            text.append(public_layer(package))
        for section, sentence, *_ in own:
            text.append(f"## {section}\n\n{sentence}\n")
            text += [block(module, True, exported) for module in shown[section]]
            text += [block(module, False, exported) for module in plain[section]]
        texts[name] = "\n".join(text)
    return texts, list(modules("**/*", taken))


def main(arguments):
    """Write or compare the pages; return what kept them from being right."""
    texts, homeless = pages()
    if homeless:
        return f"no section takes {', '.join(homeless)}; add a pattern to a section"
    if arguments != ["--check"]:
        for name, text in texts.items():
            (BOOK / f"{name}.md").write_text(text, encoding="utf-8")
        return 0
    for name, text in texts.items():
        path = BOOK / f"{name}.md"
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            return f"book/{name}.md is not what the tree says; run tools/write_api.py"
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
