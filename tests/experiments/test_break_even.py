"""When the matrix is worth giving up: the verdict turns where it says."""

import pytest

from flashlib.experiments.break_even import break_even, traffic_share, weigh


@pytest.mark.parametrize("balance", [0, 3, 21.5, 400])
def test_the_verdict_turns_at_the_break_even(balance):
    edge = break_even(balance)
    assert weigh(1.001 * edge, balance).flash_wins
    assert not weigh(0.999 * edge, balance).flash_wins
    with pytest.raises(ValueError, match="balance has -1"):
        traffic_share(-1)
