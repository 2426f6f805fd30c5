"""The row: one query and six keys, worked on paper and on every machine (chapter 1).

Its scores are 1, 3, 2, 5, 4 and 0, without a scale. With tiles of two the maximum
rises twice and then stays, so both cases of the rescale occur. A test or a
chapter that shows the row takes it from here.
"""

import numpy as np

__all__ = ["KEYS", "QUERY", "SCORES", "VALUES"]

QUERY = np.array([1.0, 1.0])
KEYS = np.array(
    [[1.0, 0.0], [1.0, 2.0], [2.0, 0.0], [2.0, 3.0], [3.0, 1.0], [0.0, 0.0]]
)
VALUES = np.array(
    [[1.0, 0.0], [0.0, 1.0], [2.0, 1.0], [1.0, 3.0], [0.0, 2.0], [4.0, 0.0]]
)
SCORES = KEYS @ QUERY

# All chapters share them, so nobody may write into them.
for _array in (QUERY, KEYS, VALUES, SCORES):
    _array.flags.writeable = False
