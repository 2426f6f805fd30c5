"""Fits of times, and gains shared out between two changes."""

import numpy as np
import pytest

from flashlib.experiments.fit import fit_times, share_out


@pytest.mark.parametrize(("a", "b"), [(3.0, 0.01), (0.0, 2.0), (5.0, 0.0)])
def test_a_fit_finds_what_it_was_made_of(a, b):
    fit = fit_times({n: a * n + b * n * n for n in (64, 500, 1024, 4096)})
    assert np.allclose(fit, (a, b), atol=1e-9)


def test_shares_add_up_and_do_not_depend_on_the_order():
    gain, matrix, bound = share_out(10.0, 9.0, 5.0, 4.8)
    assert gain == 10 / 4.8 and np.isclose(matrix + bound, 1)
    assert np.isclose(share_out(10.0, 5.0, 9.0, 4.8).matrix, bound)
    assert share_out(8.0, 10.0, 4.0, 5.0).matrix < 0
