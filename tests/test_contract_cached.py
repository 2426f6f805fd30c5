"""The contract's checks, through segments, batch rows and pages."""

import numpy as np
import pytest
from cached_ways import NotExpressible, Segment, cached_ways

from flashlib.contract import CHECKS

# Checks that these functions have no argument for, or no room.
WITH_A_MASK_OR_BIAS = set(
    "bias_added bias_after_softcap bias_under_mask dead_between_live dead_by_bias "
    "dead_by_long_mask dead_by_mask finite_bias_attends hidden_first_tile "
    "hidden_last_tile hidden_middle_tile junk_in_the_future junk_under_bias "
    "junk_under_mask low_score_attended mask_column mask_per_head mask_true_attends "
    "sink_alone window_and_mask".split()
)
WITH_MORE_QUERIES_THAN_KEYS = {"causal_more_queries", "nan_in_query", "zero_sizes"}


@pytest.mark.parametrize("way", cached_ways(), ids=str)
def test_every_check_that_can_be_said_holds(way):
    skipped = set()
    for name, check in CHECKS.items():
        try:
            with np.errstate(all="ignore"):
                check.run(way)
        except NotExpressible:
            skipped.add(name)
    # all tokens of a segment may be new; those of a cache are live already
    more = set() if isinstance(way, Segment) else WITH_MORE_QUERIES_THAN_KEYS
    assert skipped == WITH_A_MASK_OR_BIAS | more
