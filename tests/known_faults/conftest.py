"""Faults that other libraries have had, tried on every way to compute a call.

Each test is one fault that users of a library reported, as an input small enough to
compute by hand. It is named by its row in a list of such faults, and says which rule
was broken, and where. Two rows, h13 and h32, are about processes and installs: see
tests/test_process.py.
"""

import pytest
from ways import Way, ways


@pytest.fixture(params=ways(), ids=str)
def way(request) -> Way:
    return request.param
