"""Give a book build the outputs of the notebooks that were just run.

The build looks a notebook up by its code cells; one that it does not find it runs
itself, so a gap here costs time and never shows old outputs.
"""

import datetime
import pathlib

import nbformat
from jupyter_cache import get_cache
from jupyter_cache.base import CacheBundleIn


def take_timing(notebook):
    """Remove the times that nbmake records in cells and return the seconds in all.

    They are metadata of cells, which are part of what the build looks up.
    """
    times = []
    for cell in notebook.cells:
        noted = cell.metadata.pop("execution", {})
        times += [datetime.datetime.fromisoformat(t) for t in noted.values()]
    return (max(times) - min(times)).total_seconds() if times else 0.0


def seed(executed, cache_folder):
    """Put the executed copies at the given paths into a build's cache."""
    cache_folder.mkdir(parents=True, exist_ok=True)
    cache = get_cache(str(cache_folder))
    for path in map(pathlib.Path, executed):
        notebook = nbformat.read(path, 4)
        seconds = take_timing(notebook)
        bundle = CacheBundleIn(notebook, path, data={"execution_seconds": seconds})
        cache.cache_notebook_bundle(bundle, check_validity=False, overwrite=True)
