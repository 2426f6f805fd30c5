"""Exercises on pages, their owners, and guesses that cost nothing (chapter 14)."""

import copy
from collections.abc import Callable, Sequence

from flashlib.errors import CapacityError
from flashlib.exercises.answers import ch14 as answers
from flashlib.exercises.exercise import (
    Exercise,
    Step,
    expect,
    expect_close,
    expect_numbers,
)
from flashlib.exercises.pages import Pages, append_variant, new_page_each
from flashlib.traffic import attention_flops, roofline_seconds

LENGTHS, BLOCK_LEN, RESERVED = (40, 3, 17), 16, 64

# ---- 14.1 ----------------------------------------------------------------------------


def _three_numbers(answer: Sequence) -> None:
    expect_numbers(answer, (3,), "pages, and empty slots twice")


def _pages(answer: Sequence) -> None:
    used = [len({t // BLOCK_LEN for t in range(n)}) for n in LENGTHS]
    expect(
        answer[0] == sum(used),
        f"{answer[0]} pages; a page belongs to one sequence, and the lengths "
        f"{LENGTHS} need {', '.join(map(str, used))}",
    )


def _paged_waste(answer: Sequence) -> None:
    pages = {(b, t // BLOCK_LEN) for b, n in enumerate(LENGTHS) for t in range(n)}
    want = BLOCK_LEN * len(pages) - sum(LENGTHS)
    expect_close(answer[1], want, "the number of empty slots in pages")


def _reserved_waste(answer: Sequence) -> None:
    want = sum(RESERVED - n for n in LENGTHS)
    expect_close(answer[2], want, "the number of empty slots in reserved rows")


def pages_and_slots() -> list[int]:
    """Round every length up to whole pages, and subtract what is used."""
    pages = [-(-n // 16) for n in (40, 3, 17)]
    return [sum(pages), 16 * sum(pages) - 60, 3 * 64 - 60]


waste = Exercise(
    number="14.1",
    title="Pages and empty slots",
    stars=1,
    steps=(
        Step("three numbers", _three_numbers),
        Step("pages of the three sequences together", _pages),
        Step("slots that stay empty in these pages", _paged_waste),
        Step("slots that stay empty in rows of 64", _reserved_waste),
    ),
    solution=pages_and_slots,
    wrong={
        "sequences_share_pages": [4, 4, 132],
        "rounded_down": [3, -12, 132],
        "used_for_empty": [6, 60, 132],
        "one_row_reserved": [6, 36, 4],
        "two_numbers": [6, 36],
        **answers.WASTE_WRONG,
    },
    value=True,
    right=answers.WASTE_RIGHT,
)

# ---- 14.2 ----------------------------------------------------------------------------


def _filled(append: Callable, tokens: str, blocks: int = 6, length: int = 2) -> Pages:
    store = Pages(blocks, length)
    for token in tokens:
        append(store, 0, token)
    return store


def _reads(store: Pages, seq: int, want: str) -> None:
    got = store.read(seq)
    expect(
        got == want,
        f"sequence {seq} reads {got!r} through pages {store.tables[seq]}; expected "
        f"{want!r}",
    )


def _first_tokens(append: Callable) -> None:
    store = Pages(6, 2)
    for token in "ab":
        page = append(store, 0, token)
        expect(page == 0, f"token {token!r} went to page {page!r}; expected page 0")
    _reads(store, 0, "ab")


def _next_page(append: Callable) -> None:
    store = _filled(append, "abc")
    _reads(store, 0, "abc")
    expect(
        store.tables[0] == [0, 1], f"the table is {store.tables[0]}; expected [0, 1]"
    )


def _full_page_shared(append: Callable) -> None:
    store = _filled(append, "ab")
    child = store.fork(0)
    append(store, child, "x")
    _reads(store, child, "abx")
    _reads(store, 0, "ab")
    expect(
        store.tables[child] == [0, 1] and store.owners[:2] == [2, 1],
        f"the child has pages {store.tables[child]} with owners {store.owners}; a full "
        "page is not written, so it stays shared: expected [0, 1], owners 2 and 1",
    )


def _copy_first(append: Callable) -> None:
    store = _filled(append, "abc")
    child = store.fork(0)
    append(store, child, "x")
    _reads(store, child, "abcx")
    append(store, 0, "d")
    _reads(store, 0, "abcd")
    _reads(store, child, "abcx")


def _owners_counted(append: Callable) -> None:
    store = _filled(append, "abc")
    append(store, store.fork(0), "x")
    want = [2, 1, 1, 0, 0, 0]
    expect(
        store.owners == want,
        f"after the copy the owners are {store.owners}; expected {want}: page 0 is "
        "shared, page 1 and its copy are not",
    )


def _last_owner(append: Callable) -> None:
    store = _filled(append, "abc")
    append(store, store.fork(0), "x")
    append(store, 0, "d")
    expect(
        store.tables[0] == [0, 1] and store.owners.count(0) == 3,
        f"the parent has pages {store.tables[0]} and {store.owners.count(0)} pages are "
        "free; it is the last owner of page 1 and writes in place: expected [0, 1], 3",
    )


def _refused_whole(append: Callable) -> None:
    for tokens, forked in (("abcd", False), ("abc", True)):
        store = _filled(append, tokens, blocks=2)
        seq = store.fork(0) if forked else 0
        before = copy.deepcopy(vars(store))
        try:
            page = append(store, seq, "x")
        except CapacityError:
            changed = [
                f"{name} changed from {was} to {vars(store)[name]}"
                for name, was in before.items()
                if was != vars(store)[name]
            ]
            expect(not changed, f"no page was free, and yet {', and '.join(changed)}")
        else:
            expect(False, f"no page was free, and the token went to page {page}")


def append_token(store: Pages, seq: int, token: str) -> int:
    """Write into the last page if it has room, after a copy if others own it."""
    table, slot = store.tables[seq], store.lengths[seq] % store.block_len
    if slot == 0:
        table.append(store.take())
    elif store.owners[table[-1]] > 1:
        own = store.take()
        store.slots[own][:slot] = store.slots[table[-1]][:slot]
        store.owners[table[-1]] -= 1
        table[-1] = own
    store.slots[table[-1]][slot] = token
    store.lengths[seq] += 1
    return table[-1]


append = Exercise(
    number="14.2",
    title="Copy on write",
    stars=2,
    steps=(
        Step("a sequence fills its first page", _first_tokens),
        Step("a full page is followed by a new one", _next_page),
        Step("a full page stays shared", _full_page_shared),
        Step("a shared page with room is copied before it is written", _copy_first),
        Step("the owners are counted", _owners_counted),
        Step("the last owner writes in place", _last_owner),
        Step("where no page is free, nothing changes", _refused_whole),
    ),
    solution=append_token,
    wrong={
        "never_copies": append_variant(copies=lambda owners, slot: False),
        "copies_full_pages": append_variant(copies=lambda owners, slot: owners > 1),
        "copies_without_prefix": append_variant(prefix=False),
        "keeps_its_share": append_variant(release=False),
        "copies_its_own": append_variant(copies=lambda owners, slot: slot > 0),
        "counts_first": append_variant(early=True),
        "new_page_each": new_page_each,
        **answers.APPEND_WRONG,
    },
    right=answers.APPEND_RIGHT,
)

# ---- 14.3 ----------------------------------------------------------------------------

# Operations and bytes per second: a core, two cores, a large accelerator.
MACHINES = ((100e9, 10e9), (330e9, 20e9), (312e12, 2e12))


def _time(tokens: int, group: int, itemsize: int, peak: float, width: float) -> float:
    """Return the least time of one step over 1,000 keys of one KV head of 64."""
    flops = attention_flops(1000 * tokens, n_heads=group, head_dim=64)
    return roofline_seconds(flops, 2 * 1000 * 64 * itemsize, peak, width)


def _most_tokens(group: int, itemsize: int, peak: float, width: float) -> int:
    """Count up as long as the step takes no longer than reading alone."""
    reading, tokens = 2 * 1000 * 64 * itemsize / width, 0
    while _time(tokens + 1, group, itemsize, peak, width) <= reading * (1 + 1e-12):
        tokens += 1
    return tokens


def _is_whole(answer: Callable) -> None:
    got = answer(2, 4, 330e9, 20e9)
    expect_numbers([got], (1,), "the tokens of a step")
    expect(got % 1 == 0, f"tokens_for_free(2, 4, 330e9, 20e9) is {got}; not whole")


def _agrees(answer: Callable, groups: Sequence[int], itemsizes: Sequence[int]) -> None:
    for peak, width in MACHINES:
        for group in groups:
            for itemsize in itemsizes:
                got = answer(group, itemsize, peak, width)
                want = _most_tokens(group, itemsize, peak, width)
                expect(
                    got == want,
                    f"group {group}, {itemsize} bytes, {peak:.3g} flop/s, {width:.2g} "
                    f"B/s: {got}; a step of {want} takes no longer than reading, one "
                    f"of {want + 1} does",
                )


def _float32(answer: Callable) -> None:
    _agrees(answer, (2,), (4,))


def _other_groups(answer: Callable) -> None:
    _agrees(answer, (1, 4, 8), (4,))


def _other_types(answer: Callable) -> None:
    _agrees(answer, (1, 2, 32), (1, 2))


def tokens_for_free(group: int, itemsize: int, peak: float, bandwidth: float) -> int:
    """Solve 2 group tokens / itemsize <= peak / bandwidth for whole tokens."""
    return int(peak / bandwidth * itemsize / (2 * group))


free_guesses = Exercise(
    number="14.3",
    title="Guesses for free",
    stars=3,
    steps=(
        Step("a whole number of tokens", _is_whole),
        Step("group 2 in float32, on three machines", _float32),
        Step("other groups", _other_groups),
        Step("other types", _other_types),
    ),
    solution=tokens_for_free,
    wrong={
        "not_whole": lambda g, b, peak, width: peak / width * b / (2 * g),
        "multiplies_only": lambda g, b, peak, width: int(peak / width * b / g),
        "rounded_up": lambda g, b, peak, width: int(-(-peak / width * b // (2 * g))),
        "one_byte": lambda g, b, peak, width: int(2 * peak / width / g),
        "group_ignored": lambda g, b, peak, width: int(peak / width * b / 4),
        "balance_alone": lambda g, b, peak, width: int(peak / width),
        **answers.FREE_WRONG,
    },
    right=answers.FREE_RIGHT,
)

EXERCISES = (waste, append, free_guesses)
