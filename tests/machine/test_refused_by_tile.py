"""Illegal windows, views and access patterns."""

import numpy as np
from machine.refusal_cases import cases

from flashlib import FreeSizeError, MachineError, OutOfBoundsError, PartitionError

case, test_refused_with_reason_and_without_effect = cases()


@case(OutOfBoundsError, "index has 4:12 on axis 1")
def window_beyond_the_end(b):
    x = b.sbuf(64, 8)
    return lambda: x[:, 4:12]


@case(OutOfBoundsError, "index has 3:3")
def window_without_elements(b):
    x = b.sbuf(64, 8)
    return lambda: x[:, 3:3]


@case(OutOfBoundsError, "index has 8 on axis 1")
def window_at_an_index_beyond(b):
    x = b.sbuf(64, 8)
    return lambda: x[:, 8]


@case(OutOfBoundsError, "3 axes", "at most 2")
def window_of_too_many_axes(b):
    x = b.sbuf(64, 8)
    return lambda: x[:, 0, 0]


@case(PartitionError, "step 2 on axis 0")
def window_strided_over_partitions(b):
    x = b.sbuf(64, 8)
    return lambda: x[::2]


@case(PartitionError, "new axis before axis 0")
def window_with_an_axis_before_partitions(b):
    x = b.sbuf(64, 8)
    return lambda: x[None]


@case(MachineError, "index has type ndarray", "gather")
def window_by_data(b):
    x = b.sbuf(64, 8)
    return lambda: x[:, np.array([1, 2])]


@case(PartitionError, r"axes has \(1, 0\)", "transpose")
def permute_partitions(b):
    x = b.sbuf(64, 8)
    return lambda: x.permute((1, 0))


@case(FreeSizeError, r"axes has \(0, 0\)")
def permute_an_axis_twice(b):
    x = b.sbuf(64, 8)
    return lambda: x.permute((0, 0))


@case(PartitionError, "expected 64 on axis 0", "split or joined")
def reshape_partitions(b):
    x = b.sbuf(64, 8)
    return lambda: x.reshape(32, 16)


@case(FreeSizeError, "512 elements")
def reshape_to_another_size(b):
    x = b.sbuf(64, 8)
    return lambda: x.reshape(64, 9)


@case(FreeSizeError, "without a copy")
def reshape_that_would_copy(b):
    x = b.sbuf(64, 4, 2)
    return lambda: x.permute((0, 2, 1)).reshape(64, 8)


@case(PartitionError, "expected 1 on axis 0", "step 0")
def broadcast_over_partitions(b):
    x = b.sbuf(1, 8)
    return lambda: x.broadcast_to((64, 8))


@case(FreeSizeError, "axes of size 1")
def broadcast_of_a_wide_axis(b):
    x = b.sbuf(64, 8)
    return lambda: x.broadcast_to((64, 16))


@case(OutOfBoundsError, "elements 0 to 8", "0 to 7")
def pattern_beyond_the_partition(b):
    x = b.sbuf(64, 8)
    return lambda: x.ap([[8, 64], [2, 5]])


@case(PartitionError, r"pattern\[0\] has step 16", "expected 8")
def pattern_skips_partitions(b):
    x = b.sbuf(64, 8)
    return lambda: x.ap([[16, 32], [1, 8]])


@case(OutOfBoundsError, "partitions 32 to 95")
def pattern_beyond_the_last_partition(b):
    x = b.sbuf(64, 8)
    return lambda: x.ap([[8, 64], [1, 8]], offset=256)


@case(FreeSizeError, "num >= 1")
def pattern_without_elements(b):
    x = b.sbuf(64, 8)
    return lambda: x.ap([[8, 0]])
