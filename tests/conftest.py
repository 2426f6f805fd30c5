"""What every test may use: `require` for packages that a newcomer need not have."""

import importlib
import os

import pytest


def require(name):
    """Return the module `name`, or skip the test that needs it.

    With FLASHLIB_REQUIRE_ORACLES=1, as the continuous checks set it, a missing
    module is a failure instead: an oracle that is never asked proves nothing.
    """
    if os.environ.get("FLASHLIB_REQUIRE_ORACLES") == "1":
        return importlib.import_module(name)
    return pytest.importorskip(name, reason=f"{name} is not installed")
