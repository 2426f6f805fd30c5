"""How many additions follow one another, at and beside the borders."""

from flashlib.chains import CHAIN, DEFAULT_TILE, STRETCH, longest_tile, shortest_tile


def test_a_tile_grows_with_the_root_beyond_a_stretch():
    lengths = (0, 1, STRETCH - 1, STRETCH, 65**2 - 1, 65**2, 100**2, 10**6)
    assert [longest_tile(n) for n in lengths] == [64, 64, 64, 64, 64, 65, 100, 1000]


def test_a_tile_shrinks_with_the_length_below_a_stretch():
    lengths = (0, 63, 64, 127, 128, STRETCH - 1, STRETCH, 65**2, 10**6)
    assert [shortest_tile(n) for n in lengths] == [0, 0, 1, 1, 2, 63, 64, 65, 1000]


def test_the_shortest_tile_is_never_longer_than_the_longest():
    assert STRETCH == CHAIN * DEFAULT_TILE == 4096
    for n in (1, 100, 4095, 4097, 10_000, 123_456, 10**7):
        assert shortest_tile(n) <= longest_tile(n) <= max(DEFAULT_TILE, n**0.5)
