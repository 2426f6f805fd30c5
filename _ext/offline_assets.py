"""Serve the pages' own assets with MathJax and the widget manager, and mend markup.

The files of others come from .vendor/site, which tools/vendor.py fills. Without that
folder the pages keep the usual addresses of public servers.
"""

import html
import pathlib
import re

from sphinx.util import logging

log = logging.getLogger(__name__)

OWN_ASSETS = "book/assets/site"
VENDORED = ".vendor"
CITATION_ROLE = re.compile(
    r' role="doc-biblioentry"| role="list"(?= class="citation-list")'
)
# MathJax sets a formula as a block of its own, after which a line may end.
TOGETHER = re.compile(
    r'(\(?<span class="math notranslate nohighlight">[^<]*</span>[.,;:!?)]+)'
)
# MyST-NB marks a notebook that ran with an emoji, for which many a system has no font.
EMOJI = {"<p>✅</p>": "<p>✓</p>", "<p>❌</p>": "<p>✗</p>"}
# The theme's fontawesome.js turns every <i> into <svg>, also those that widgets add
# later; the play buttons then fail when they look for their <i> again.
KEEP_WIDGET_ICONS = "window.FontAwesomeConfig = { observeMutations: false };"
INDEX = """\
<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="refresh" content="0; url={first}">
<link rel="icon" href="{icon}">
<title>{title}</title>
</head>
<body><a href="{first}">{title}</a></body>
</html>
"""


def use_vendored(app, config):
    """Point Sphinx and MyST-NB at the vendored files, if they are complete."""
    config.html_static_path.append(str(pathlib.Path(app.srcdir, OWN_ASSETS)))
    root = pathlib.Path(app.srcdir, VENDORED)
    if not (root / "stamp").is_file():
        log.info("offline_assets: %s is not filled; the pages load from outside", root)
        return
    config.html_static_path.append(str(root / "site"))
    config.mathjax_path = "vendor/mathjax/tex-chtml.js"
    config.nb_ipywidgets_js = {
        "vendor/requirejs/require.js": {"defer": "defer"},
        "vendor-paths.js": {"defer": "defer"},
        "vendor/html-manager/embed-amd.js": {"defer": "defer"},
    }


def drop_thebe(app, pagename, templatename, context, doctree):
    """Leave out sphinx-thebe, which writes an outside address into each page."""
    context["script_files"] = [
        script
        for script in context["script_files"]
        if "THEBE_JS_URL" not in str(getattr(script, "attributes", {}).get("body", ""))
        and "sphinx-thebe" not in str(getattr(script, "filename", script))
    ]
    context["css_files"] = [
        sheet
        for sheet in context["css_files"]
        if "sphinx-thebe" not in str(getattr(sheet, "filename", sheet))
    ]


def mend_markup(app, pagename, templatename, context, doctree):
    """Mend what the tools write: roles, tables, marks, and formulas before a stop."""
    if "body" in context:
        body = CITATION_ROLE.sub("", context["body"])
        body = TOGETHER.sub(r'<span class="fl-together">\1</span>', body)
        for emoji, mark in EMOJI.items():
            body = body.replace(emoji, mark)
        # a table scrolls sideways, which keys do only to what can have the focus
        context["body"] = body.replace(
            '<table class="table', '<table tabindex="0" class="table'
        )


def write_index(app, exception):
    """Lead from index.html to the first page, and name the icon there too."""
    if exception or app.builder.name != "html":
        return
    first = f"{app.config.root_doc}.html"
    icon = f"_static/{pathlib.Path(app.config.html_favicon).name}"
    text = INDEX.format(
        title=html.escape(app.config.html_title), first=first, icon=icon
    )
    pathlib.Path(app.outdir, "index.html").write_text(text, encoding="utf-8")


def setup(app):
    app.add_js_file(None, body=KEEP_WIDGET_ICONS, priority=100)
    app.add_js_file("page-fixes.js", defer="defer")
    app.add_css_file("custom.css", priority=900)
    app.connect("config-inited", use_vendored, priority=300)
    app.connect("html-page-context", drop_thebe, priority=900)
    app.connect("html-page-context", mend_markup, priority=900)
    app.connect("build-finished", write_index, priority=900)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
