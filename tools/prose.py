"""Take the prose out of Markdown: what a reader reads, without code, links, markup."""

import re

# directives whose content is not prose
CODE_DIRECTIVES = ("code", "literalinclude", "math", "eval-rst", "bibliography", "glue")
FENCE = re.compile(r"^\s*(`{3,}|~{3,})\s*(\{([\w:-]+)\})?")
DROPPED = [
    (re.compile(r"\A---\n.*?\n---\n", re.S), ""),  # front matter
    (re.compile(r"<!--.*?-->", re.S), ""),
    (re.compile(r"(\{[\w:-]+\})?(`+)(?!`).+?(?<!`)\2(?!`)", re.S), " "),  # roles, code
    (re.compile(r"\]\([^)]*\)"), "]"),  # link targets
    (re.compile(r"https?://\S+"), " "),
    (re.compile(r"</?\w[^>]*>"), " "),
    (re.compile(r"^\s*:{3,}.*$|^\s*:[\w-]+:.*$|^\([\w:-]+\)=$", re.M), ""),
    (re.compile(r"\{,\}"), ","),  # a thousands comma inside a formula
]


def without_code_blocks(text):
    """Drop fenced code; keep what stands inside fenced notes and the like."""
    kept, open_fences = [], []
    for line in text.splitlines():
        fence = FENCE.match(line)
        if fence and open_fences and not fence[2] and fence[1] >= open_fences[-1][0]:
            open_fences.pop()
        elif fence and not any(is_code for _, is_code in open_fences):
            directive = fence[3]
            is_code = not directive or directive.startswith(CODE_DIRECTIVES)
            open_fences.append((fence[1], is_code))
        elif not any(is_code for _, is_code in open_fences):
            kept.append(line)
    return "\n".join(kept)


def prose_of(markdown):
    """Return the readable text of a Markdown source, formulas included."""
    text = without_code_blocks(markdown)
    for pattern, replacement in DROPPED:
        text = pattern.sub(replacement, text)
    return text
