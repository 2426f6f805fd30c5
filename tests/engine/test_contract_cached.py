"""The contract's checks, through segments, batch rows and pages."""

import numpy as np
import pytest
from engine.cached_ways import NotExpressible, cached_ways

from flashlib.contract import CHECKS


@pytest.mark.parametrize("way", cached_ways(), ids=str)
def test_every_check_that_can_be_said_holds(way):
    said = 0
    for check in CHECKS.values():
        try:
            with np.errstate(all="ignore"):
                check.run(way)
        except NotExpressible:
            continue
        said += 1
    assert said > 20
