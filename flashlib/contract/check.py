"""What a check is: a rule in words, and a run that raises where it breaks (book)."""

from collections.abc import Callable
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Check:
    """One promise, and a run of an attention function that holds it to that promise.

    Parameters
    ----------
    name : str
        As in `flashlib.contract.CHECKS`.
    topic : str
        What it is about; the checks of one topic stand in one module.
    rule : str
        The promise, in one sentence.
    run : callable
        ``run(attention)`` calls ``attention(q, k, v, **options)`` like
        `flashlib.flash_attention` and raises AssertionError, with the values that show
        it, where the promise is broken.
    """

    name: str
    topic: str
    rule: str
    run: Callable[[Callable], None]


@dataclass
class Topic:
    """The checks of one module, in the order in which they are written.

    Examples
    --------
    >>> topic = Topic("arithmetic")
    >>> @topic.check("One and one are two.")
    ... def sum_of_ones(attention):
    ...     assert attention(1, 1) == 2
    >>> topic.checks[0].name, topic.checks[0].rule
    ('sum_of_ones', 'One and one are two.')
    """

    name: str
    checks: list[Check] = field(default_factory=list)

    def check(self, rule: str) -> Callable[[Callable], Callable]:
        """Return a decorator that registers a function; the rule documents it."""

        def register(run: Callable[[Callable], None]) -> Callable:
            run.__doc__ = rule
            self.checks.append(Check(run.__name__, self.name, rule, run))
            return run

        return register
