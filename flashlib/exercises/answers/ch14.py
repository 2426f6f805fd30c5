"""More answers to the exercises on pages and free guesses (chapter 14)."""

import numpy as np

from flashlib.exercises.pages import Pages, append_variant

WASTE_WRONG = {
    "empty_for_used": [6, 36, 60],
    "in_words": ["six", "36", "132"],
}
WASTE_RIGHT = {"an_array": np.array([6, 36, 132])}

_right = append_variant()


def _forgets_to_return(store: Pages, seq: int, token: str) -> None:
    _right(store, seq, token)


def _returns_the_slot(store: Pages, seq: int, token: str) -> int:
    slot = store.lengths[seq] % store.block_len
    _right(store, seq, token)
    return slot


def _writes_both(store: Pages, seq: int, token: str) -> int:
    """Copy, and write into the page that the others still own as well."""
    slot, table = store.lengths[seq] % store.block_len, store.tables[seq]
    shared = table[-1] if slot and store.owners[table[-1]] > 1 else None
    page = _right(store, seq, token)
    if shared is not None:
        store.slots[shared][slot] = token
        for other, pages in enumerate(store.tables):
            if other != seq and shared in pages:
                store.lengths[other] += 1
    return page


APPEND_WRONG = {
    "forgets_to_return": _forgets_to_return,
    "returns_the_slot": _returns_the_slot,
    "writes_both": _writes_both,
}


def _replaces_the_lists(store: Pages, seq: int, token: str) -> int:
    """Copy the whole page, and put new lists in the place of the old ones."""
    table, length = list(store.tables[seq]), store.lengths[seq]
    slot = length % store.block_len
    if not slot:
        table = [*table, store.take()]
    elif store.owners[table[-1]] != 1:
        old, table[-1] = table[-1], store.take()
        store.owners[old] -= 1
        store.slots[table[-1]] = list(store.slots[old])
    store.slots[table[-1]][slot] = token
    store.tables[seq], store.lengths[seq] = table, length + 1
    return table[-1]


APPEND_RIGHT = {"whole_page": _right, "replaces_the_lists": _replaces_the_lists}
FREE_WRONG = {
    "reads_keys_only": lambda g, b, peak, width: int(peak / width * b / (4 * g)),
    "at_least_one": lambda g, b, peak, width: max(1, int(peak / width * b / (2 * g))),
}
FREE_RIGHT = {
    "floor_of_seconds": lambda g, b, peak, width: np.floor(b / width / (2 * g / peak)),
    "whole_division": lambda g, b, peak, width: peak * b // (2 * g * width),
}
