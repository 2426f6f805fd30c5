"""Run the prefill kernel: items, sections, groups of queries (chapter 23)."""

from flashlib.machine.tile import Tile
from flashlib.programs.cte.group import attend, empty_state
from flashlib.programs.cte.run import CteRun, Group, load_section
from flashlib.programs.cte.sizes import Keys, Section, Share

__all__ = ["Plan", "run_core"]

Plan = dict[int, list[Keys]]


def run_core(run: CteRun, shares: list[Share]) -> None:
    """Compute this core's share of the call, item by item."""
    for share in shares:
        with run.m.sbuf.scope():
            _item(run, share)


def _item(run: CteRun, share: Share) -> None:
    """Walk the sections; keys and values are loaded once for all groups of the item."""
    m, s = run.m, run.s
    state = empty_state(run, len(share.groups))
    plans = {group: dict(s.plan(group)) for group in share.groups}
    for number, section in enumerate(s.sections()):
        busy = [group for group in share.groups if number in plans[group]]
        if busy:
            with m.sbuf.scope():
                loaded = load_section(run, share.item, section)
                for group in busy:
                    column = group - share.groups[0]
                    own = [x[: len(s.rows(group)), column : column + 1] for x in state]
                    where = (share.item, group, number, section)
                    with m.sbuf.scope():
                        attend(run, _group(run, where, plans[group], loaded, own))
    span = slice(share.groups[0], share.groups[-1] + 1)
    with m.step("store"):
        for name, tile in zip(("neg_max", "recip"), state, strict=True):
            m.isa.dma_copy(run.hbm[name][share.item, :, span], tile)


def _group(
    run: CteRun,
    where: tuple[int, int, int, Section],
    plan: Plan,
    loaded: tuple[Tile, Tile],
    state: list[Tile],
) -> Group:
    """One group in one section, with what it shares and what is its own."""
    item, group, number, section = where
    keys, values = loaded
    neg_max, total = state
    return Group(
        item=item,
        number=group,
        rows=run.s.rows(group),
        section=section,
        tiles=plan[number],
        first=number == min(plan),
        last=number == max(plan),
        keys=keys,
        values=values,
        neg_max=neg_max,
        total=total,
    )
