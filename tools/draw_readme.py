"""Draw the picture of the README: one frame of the moving figure of chapter 4.

    .venv/bin/python tools/draw_readme.py

On the pages the style sheet gives a drawing its colors. A picture in a README has
none, so the light ones are written into it, on paper of its own.
"""

import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))
PICTURE = ROOT / "book" / "images" / "row.svg"
STYLE = ROOT / "book" / "assets" / "site" / "custom.css"
# The order of the keys, and how many are read.
FRAME = ("as given", 4)


def light_colors():
    """Return {name: color} of the light theme."""
    css = STYLE.read_text(encoding="utf-8")
    (block,) = re.findall(r'html\[data-theme="light"\] \{(.*?)\}', css, re.S)
    return dict(re.findall(r"--fl-([a-z]+): (#[0-9a-f]{6})", block))


def draw():
    """Return the frame as a file that needs no page around it."""
    from flashlib.widgets import ch04

    svg, colors = ch04.scrubber_figure().frame(*FRAME).picture, light_colors()
    svg = re.sub(r"var\(--fl-(\w+)[^)]*\)", lambda name: colors[name[1]], svg)
    tag, _, body = svg.partition(">")
    # what only the style sheet and the tests of the pages ask for
    tag = re.sub(r' (class|style|width|data-state)="[^"]*"', "", tag)
    width, height = re.search(r'viewBox="0 0 (\S+) (\S+)"', tag).groups()
    size = f'width="{width}" height="{height}"'
    return f'{tag} {size}><rect {size} fill="{colors["paper"]}"/>{body}\n'


def main():
    PICTURE.parent.mkdir(exist_ok=True)
    PICTURE.write_text(draw(), encoding="utf-8")
    print(f"drawn {PICTURE}")


if __name__ == "__main__":
    main()
