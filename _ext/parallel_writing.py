"""Write pages on all cores.

Jupyter Book has no option for it. Pages are still read one after the other, because
an extension that the book needs does not say whether it may be read in parallel.
"""

import os

# Each of them is a copy of the process; the pages are few.
MOST = 8


def use_all_cores(app, env):
    """Ask for a writer per core once everything is read; one core feeds them."""
    app.parallel = 1 + min(os.cpu_count() or 1, MOST)


def setup(app):
    """Register the extension."""
    app.connect("env-check-consistency", use_all_cores)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
