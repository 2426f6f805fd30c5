"""Take a picture of every built page, in both themes and at both widths.

    .venv/bin/python tools/screenshots.py [PART-OF-A-NAME ...]

They are for people to look at, in _build/screenshots/.
"""

import sys

import chromium

OUT = chromium.ROOT / "_build" / "screenshots"


def main(parts):
    OUT.mkdir(parents=True, exist_ok=True)
    names = [
        n for n in chromium.page_names() if not parts or any(p in n for p in parts)
    ]
    with chromium.serve() as base, chromium.launch() as browser:
        page = browser.new_page()
        for name in names:
            for kind, width in chromium.WIDTHS.items():
                for theme in chromium.THEMES:
                    chromium.show(page, f"{base}/{name}.html", width, theme)
                    target = OUT / f"{name.replace('/', '_')}-{theme}-{kind}.png"
                    page.screenshot(path=target, full_page=True)
    print(f"{4 * len(names)} pictures in {OUT}")


if __name__ == "__main__":
    main(sys.argv[1:])
