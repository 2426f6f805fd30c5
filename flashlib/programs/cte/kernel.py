"""Run the prefill kernel: items, sections, groups of queries (chapter 23)."""

from flashlib.programs.cte.group import attend, empty_state
from flashlib.programs.cte.run import CteRun, Group, load_section
from flashlib.programs.cte.sizes import Share


def run_core(run: CteRun, shares: list[Share]) -> None:
    """Compute this core's share of the call, item by item."""
    for share in shares:
        with run.m.sbuf.scope():
            _item(run, share)


def _item(run: CteRun, share: Share) -> None:
    """Walk the sections; keys and values are loaded once for all groups of the item."""
    m, s = run.m, run.s
    neg_max, total = empty_state(run, len(share.groups))
    plans = {group: dict(s.plan(group)) for group in share.groups}
    for number, section in enumerate(s.sections()):
        busy = [group for group in share.groups if number in plans[group]]
        if not busy:
            continue
        with m.sbuf.scope():
            keys, values = load_section(run, share.item, section)
            for group in busy:
                rows = s.rows(group)
                column = group - share.groups[0]
                own = slice(0, len(rows)), slice(column, column + 1)
                numbers = list(plans[group])
                with m.sbuf.scope():
                    attend(
                        run,
                        Group(
                            item=share.item,
                            number=group,
                            rows=rows,
                            section=section,
                            tiles=plans[group][number],
                            first=number == numbers[0],
                            last=number == numbers[-1],
                            keys=keys,
                            values=values,
                            neg_max=neg_max[own],
                            total=total[own],
                        ),
                    )
    span = slice(share.groups[0], share.groups[-1] + 1)
    with m.step("store"):
        m.isa.dma_copy(run.hbm["neg_max"][share.item, :, span], neg_max)
        m.isa.dma_copy(run.hbm["recip"][share.item, :, span], total)
