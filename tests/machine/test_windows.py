"""Where windows lie, which of them repeat elements, and what belongs to them."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import flashlib
from flashlib.machine import Machine

SHAPE = (6, 4, 5, 3)


def _bytes_from_the_start(tile, whole):
    """The address of the first element, taken from NumPy."""
    first, start = (t.array.__array_interface__["data"][0] for t in (tile, whole.base))
    return first - start


@pytest.mark.parametrize(
    "key, at",
    [
        (np.s_[:, ::-1], 28),
        (np.s_[:, -1::-1], 28),
        (np.s_[:, -2:0:-1], 24),
        (np.s_[:, 5::-2], 20),
        (np.s_[:, :2:-1], 28),
        (np.s_[2:4, ::-1], 2 * 32 + 28),
        (np.s_[-1, -1], 127 * 32 + 28),
        (np.s_[:, 1::3], 4),
        (np.s_[..., np.int64(7) :: np.int64(-1)], 28),
    ],
)
def test_a_window_starts_at_its_first_element(key, at):
    tile = Machine().sbuf.put(np.zeros((128, 8), np.float32))
    assert tile[key].at == _bytes_from_the_start(tile[key], tile) == at


@st.composite
def _slice(draw, size):
    """A slice, forwards or backwards, of at least one element, with ends left out."""
    first, last = draw(st.integers(0, size - 1)), draw(st.integers(0, size - 1))
    step = draw(st.integers(1, 3)) * (1 if first <= last else -1)
    stop = last + (1 if step > 0 else -1)
    start = draw(st.sampled_from([first, first - size]))
    if first == (0 if step > 0 else size - 1) and draw(st.booleans()):
        start = None
    return slice(start, None if stop < 0 or stop == size else stop, step)


@st.composite
def _view(draw, tile):
    """Another view of a tile, of any of the kinds that there are."""
    shape, ndim = tile.shape, tile.ndim
    kind = draw(st.sampled_from(["window", "permute", "join", "repeat"]))
    if kind == "permute":
        return tile.permute((0, *draw(st.permutations(range(1, ndim)))))
    if kind == "join" and tile.array.flags.c_contiguous:
        return tile.reshape(shape[0], -1)
    if kind == "repeat":
        many = [2 if n == 1 else n for n in shape[1:]]
        return tile.broadcast_to((shape[0], *many))
    key = [slice(draw(st.integers(0, shape[0] - 1)), None)]
    for size in shape[1:]:
        key.append(draw(_slice(size)))
        if draw(st.booleans()) and len(key) < 4:
            key.append(None)
    return tile[tuple(key)]


@settings(max_examples=100, deadline=None)
@given(st.data(), st.sampled_from(["hbm", "sbuf", "psum"]))
def test_every_view_knows_its_address_and_its_repeats(data, memory):
    numbers = np.arange(np.prod(SHAPE), dtype=np.int32).reshape(SHAPE)
    tile = whole = getattr(Machine(), memory).put(numbers)
    for _ in range(data.draw(st.integers(1, 5))):
        tile = data.draw(_view(tile))
        assert tile.at == _bytes_from_the_start(tile, whole)
        if tile.on_chip:
            assert tile.start == tile.numpy().flat[0] // numbers[0].size
        assert tile.broadcast == (np.unique(tile.numpy()).size < tile.array.size)


@pytest.mark.parametrize(
    "key, words",
    [
        (np.s_[:, 8::-1], "index has 8::-1 on axis 1"),
        (np.s_[:, :-9:-1], "index has :-9:-1 on axis 1"),
        (np.s_[:, 2:5:-1], "index has 2:5:-1 on axis 1"),
        (np.s_[:, 0:9], "index has 0:9 on axis 1"),
    ],
)
def test_a_slice_beyond_its_axis_is_refused_in_both_directions(bench, key, words):
    tile = bench.sbuf(4, 8)
    with bench.refuses(flashlib.OutOfBoundsError, words):
        tile[key]


def test_a_product_goes_backwards_into_one_bank(bench):
    x, y = bench.sbuf(64, 16), bench.sbuf(64, 512)
    d = bench.m.psum.alloc((16, 1024))
    bench.isa.nc_matmul(d[:, 512:][:, ::-1], x, y)
    bench.isa.nc_matmul(d[:, 511::-1], x, y)
    both = np.hstack([y.numpy()[:, ::-1]] * 2)
    np.testing.assert_allclose(d.numpy(), x.numpy().T @ both, rtol=1e-4, atol=1e-4)


def test_the_refusal_names_the_banks_of_the_memory(bench):
    """A tensor from bank 2 on; its own first bank is not the first of psum."""
    x, y = bench.sbuf(64, 16), bench.sbuf(64, 512)
    d = bench._keep(bench.m.psum.alloc((16, 1024), bank=2))
    for window in (d[:, 256:768], d[:, 767:255:-1]):
        with bench.refuses(flashlib.BankError, "dst has columns in banks 2 to 3"):
            bench.isa.nc_matmul(window, x, y)


def test_what_repeats_still_repeats_after_another_view(bench):
    x = bench.sbuf(4, 1, 3)
    wide = x.broadcast_to((4, 2, 3))
    for view in (
        wide,
        wide.broadcast_to((4, 2, 3)),
        wide.permute((0, 2, 1)),
        wide[:, :, 1:],
        wide[:, ::-1, 0],
    ):
        with bench.refuses(flashlib.FreeSizeError, "dst has elements that repeat"):
            bench.isa.memset(view, 0.0)


def test_a_window_of_what_repeats_is_written_where_it_does_not(bench):
    x, pattern = bench.sbuf(4, 1, 3), bench.sbuf(4, 6)
    bench.isa.memset(x.broadcast_to((4, 2, 3))[:, 1, ::2], 5.0)
    assert (x.numpy()[:, 0, ::2] == 5).all() and (x.numpy()[:, 0, 1] != 5).all()
    bench.isa.memset(pattern.ap([[6, 4], [1, 4], [1, 3]])[:, :, 1], 5.0)
    np.testing.assert_array_equal(
        pattern.numpy()[0] == 5, [False, True, True, True, True, False]
    )


def test_one_column_seen_often_is_not_a_whole_tensor(bench):
    """As many elements as the tensor has, all written, and yet not all of it."""
    tile, out = bench.fresh("sbuf", 4, 4), bench.sbuf(4, 4)
    bench.isa.memset(tile[:, :1], 1.0)
    assert tile[:, :1].broadcast_to((4, 4)).is_written()
    assert not tile.is_written()
    with bench.refuses(flashlib.UninitializedError, "12 unwritten elements of 16"):
        bench.isa.tensor_copy(out, tile)


def test_a_reshaped_part_still_belongs_to_the_whole():
    m = Machine()
    array = np.arange(32, dtype=np.float32).reshape(4, 8)
    for tile in (m.sbuf.put(array), m.hbm.put(array)):
        whole = [[8, 4], [1, 8]]
        for part in (tile[2:], tile[:, :4], tile[:, ::-1]):
            part = part.reshape(part.shape[0], 2, -1)
            np.testing.assert_array_equal(part.ap(whole).numpy(), array)
        # a pattern over the whole tensor, in whatever shape it stands
        np.testing.assert_array_equal(tile.reshape(4, 2, 4).ap(whole).numpy(), array)


def test_rows_are_those_of_the_shape_in_which_a_tensor_stands(bench):
    """The whole tensor in another shape is a whole tensor again; a gather counts it."""
    table, out = bench.hbm(4, 8), bench.sbuf(2, 2)
    index = bench.m.sbuf.put(np.array([[7], [13]], np.uint32))
    rows = table.reshape(16, 2).ap([[2, 2], [1, 2]], vector_offset=index)
    bench.isa.dma_copy(out, rows)
    expected = table.numpy().reshape(16, 2)[[7, 13]]
    np.testing.assert_array_equal(out.numpy(), expected)


def test_axes_of_size_1_do_not_end_a_run():
    tile = Machine().hbm.put(np.zeros((4, 8), np.float32))
    assert tile[:, None].run_elements() == 32
    assert tile[:, :4, None].run_elements() == 4
    assert tile[:, ::-1].run_elements() == 1
