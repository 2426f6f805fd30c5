"""A small paged memory, and wrong ways to append to it (chapter 14)."""

from collections.abc import Callable

from flashlib.errors import CapacityError


class Pages:
    """A small paged memory: slots, owners of each page, and a table per sequence.

    Parameters
    ----------
    num_blocks, block_len : int
        Pages, and tokens per page.
    """

    def __init__(self, num_blocks: int, block_len: int):
        self.block_len = block_len
        self.slots = [[None] * block_len for _ in range(num_blocks)]
        self.owners = [0] * num_blocks
        self.tables: list[list[int]] = [[]]
        self.lengths = [0]

    def take(self) -> int:
        """Return the lowest free page, which has one owner from now on."""
        if 0 not in self.owners:
            raise CapacityError(
                f"owners has {self.owners}; expected a free page; a page with an owner "
                "is not free"
            )
        page = self.owners.index(0)
        self.owners[page] = 1
        return page

    def fork(self, seq: int) -> int:
        """Return a new sequence that shares all pages of `seq`."""
        for page in self.tables[seq]:
            self.owners[page] += 1
        self.tables.append(list(self.tables[seq]))
        self.lengths.append(self.lengths[seq])
        return len(self.tables) - 1

    def read(self, seq: int) -> str:
        """Return the tokens of a sequence, in order."""
        flat = [token for page in self.tables[seq] for token in self.slots[page]]
        return "".join(str(token) for token in flat[: self.lengths[seq]])


def _shared_with_room(owners: int, slot: int) -> bool:
    return owners > 1 and slot > 0


def append_variant(
    copies: Callable = _shared_with_room,
    prefix: bool = True,
    release: bool = True,
    early: bool = False,
) -> Callable:
    """Return an append that differs from the right one in one place."""

    def append(store: Pages, seq: int, token: str) -> int:
        table, slot = store.tables[seq], store.lengths[seq] % store.block_len
        store.lengths[seq] += early
        if table and copies(store.owners[table[-1]], slot):
            own, old = store.take(), table[-1]
            if prefix:
                store.slots[own][:] = store.slots[old]
            store.owners[old] -= release
            table[-1] = own
        if slot == 0:
            table.append(store.take())
        store.slots[table[-1]][slot] = token
        store.lengths[seq] += not early
        return table[-1]

    return append


def new_page_each(store: Pages, seq: int, token: str) -> int:
    """Take a page for every token."""
    page = store.take()
    store.tables[seq].append(page)
    store.slots[page][0] = token
    store.lengths[seq] += 1
    return page
