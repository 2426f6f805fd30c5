"""Starting kernels: what is built, lent and limited; the kernels here are Python's."""

import sys

import numba
import numpy as np
import pytest

from flashlib import forks
from flashlib.kernels import launch as module
from flashlib.kernels.launch import launch, launch_alone, limit_workers, workers
from flashlib.kernels.targets import this_target


@pytest.fixture
def kernel():
    """A builder, what it was built with, and a list of what happened in each run."""

    def build(decorate, target, stamp):
        build.built.append((decorate.keywords["parallel"], target, stamp))

        def run(*arguments):
            state = module._state.lock.locked(), numba.get_num_threads()
            build.runs.append((arguments, *state))
            if "fail" in map(str, arguments):
                raise RuntimeError("a kernel that fails")

        return run

    build.built, build.runs = [], []
    return build


@pytest.fixture
def lost_pool(monkeypatch):
    monkeypatch.setattr(forks, "_lost", True)


def test_a_kernel_is_built_once_and_runs_with_its_arguments(kernel):
    launch(kernel, 1, "two")
    launch(kernel, 3)
    ((parallel, target, stamp),) = kernel.built
    assert parallel is True and target == this_target() and stamp % 2 == 1
    assert [arguments for arguments, *_ in kernel.runs] == [(1, "two"), (3,)]
    assert all(locked for _, locked, _ in kernel.runs)
    assert not module._state.lock.locked()


def test_a_serial_copy_is_another_kernel_and_waits_for_nobody(kernel):
    launch(kernel)
    launch_alone(kernel, 5)
    parallel, alone = kernel.built
    assert (parallel[0], alone[0]) == (True, False)
    assert parallel[2] - alone[2] == 1 and alone[2] % 2 == 0
    assert kernel.runs[1][:2] == ((5,), False)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_room_is_the_last_argument_in_the_type_of_the_first(kernel, dtype):
    x = np.zeros(2, dtype)
    launch(kernel, x, 7, room=33)
    launch(kernel, x, room=10)
    (one, seven, lent), (_, again) = (arguments for arguments, *_ in kernel.runs)
    assert one is x and seven == 7
    assert lent.shape == (33,) and again.shape == (10,)
    assert lent.dtype == again.dtype == dtype
    assert again.ctypes.data == lent.ctypes.data


def test_fewer_threads_take_part_for_one_call_only(kernel):
    before = numba.get_num_threads()
    for threads in (None, 1, before, before + 1):
        launch(kernel, threads=threads)
        assert numba.get_num_threads() == before
    assert [n for *_, n in kernel.runs] == [before, 1, before, before]


def test_a_kernel_that_fails_leaves_threads_and_lock_as_they_were(kernel):
    before = numba.get_num_threads()
    for start, options in ((launch, {"threads": 1}), (launch, {}), (launch_alone, {})):
        with pytest.raises(RuntimeError, match="that fails"):
            start(kernel, "fail", **options)
        assert numba.get_num_threads() == before
        assert not module._state.lock.locked()


def test_workers_are_limited_by_what_there_is():
    before = numba.get_num_threads()
    try:
        assert limit_workers(1) == workers() == 1
        most = numba.config.NUMBA_NUM_THREADS
        assert limit_workers(10**6) == workers() == most
    finally:
        limit_workers(before)


def test_without_a_pool_kernels_run_on_one_core(kernel, lost_pool):
    assert workers() == 1
    before = numba.get_num_threads()
    launch(kernel, threads=1)
    assert [parallel for parallel, *_ in kernel.built] == [False]
    assert [n for *_, n in kernel.runs] == [before]  # the pool is left alone
    assert limit_workers(2) == 1
    assert numba.get_num_threads() == before


def test_a_fork_loses_the_pool_that_there_is(monkeypatch):
    def no_pool():
        raise ValueError("Threading layer is not initialized.")

    monkeypatch.setattr(forks, "_lost", False)
    with monkeypatch.context() as before:
        before.setattr(numba, "threading_layer", no_pool)
        forks._after_fork()
        assert not forks.pool_is_lost()
        before.delitem(sys.modules, "numba")
        forks._after_fork()
        assert not forks.pool_is_lost()
    numba.get_num_threads()
    for _ in range(2):  # a child, and its child
        forks._after_fork()
        assert forks.pool_is_lost()


def test_a_fork_renews_the_lock_that_nobody_is_left_to_open(monkeypatch):
    monkeypatch.setattr(module, "_state", module._State())
    module._state.lock.acquire()
    module._after_fork()
    assert not module._state.lock.locked()
