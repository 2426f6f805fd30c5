"""Run one program on two cores over one HBM (chapter 22).

The cores take turns: a core runs until it has to wait for the other one, so a run
is the same every time. Where they meet, time is joined later by the timeline.
"""

import itertools
import threading
import weakref
from collections.abc import Callable

import numpy as np

from flashlib.errors import DTypeError, FreeSizeError, MachineError
from flashlib.machine.machine import Machine
from flashlib.machine.memory import Hbm
from flashlib.machine.spec import NC_V3, Spec
from flashlib.machine.trace import Trace

__all__ = ["CorePair"]


class CorePair:
    """Two cores with memories of their own and one HBM between them.

    Parameters
    ----------
    spec : Spec
        Generation 3 or later.

    Examples
    --------
    >>> def swap(m):
    ...     mine = m.sbuf.put(np.full((1, 1), m.core, np.float32))
    ...     theirs = m.sbuf.alloc((1, 1))
    ...     m.isa.sendrecv(theirs, mine, 1 - m.core, 1 - m.core, pipe_id=0)
    ...     return float(theirs.numpy()[0, 0])
    >>> CorePair().run(swap)
    (1.0, 0.0)
    """

    def __init__(self, spec: Spec = NC_V3):
        if spec.generation < 3:
            raise MachineError(
                f"spec has {spec.name}; expected generation 3 or later; it has no "
                "pairs of cores; use one Machine"
            )
        self.hbm = Hbm(spec)
        self.cores = tuple(Machine(spec, hbm=self.hbm, core=c) for c in (0, 1))
        for machine in self.cores:
            machine.state.pair = weakref.proxy(self)
        self._meeting: _Meeting | None = None

    @property
    def traces(self) -> tuple[Trace, Trace]:
        """One trace per core."""
        return tuple(m.trace for m in self.cores)

    def run(self, program: Callable[[Machine], object]) -> tuple[object, object]:
        """Run ``program(machine)`` on both cores; return both results.

        Raises
        ------
        MachineError
            When a core waits for a partner that has ended, failed, or waits for
            something else. An error of a program itself passes through.
        """
        meeting = self._meeting = _Meeting()
        results: list[object] = [None, None]
        errors: list[BaseException | None] = [None, None]

        def work(core: int) -> None:
            meeting.wait_for_turn(core)
            try:
                results[core] = program(self.cores[core])
            except BaseException as error:  # handed to the caller's thread below
                errors[core] = error
                meeting.culprit = core if meeting.culprit is None else meeting.culprit
            finally:
                meeting.leave(core)

        threads = [threading.Thread(target=work, args=(c,)) for c in (0, 1)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self._meeting = None
        if meeting.culprit is not None:
            raise errors[meeting.culprit]
        return tuple(results)

    def meet(self, core: int, key: tuple, payload: object) -> tuple[object, int]:
        """Exchange payloads with the other core; called by instructions only."""
        if self._meeting is None:
            raise MachineError(
                f"{key[0]} has no partner outside CorePair.run; expected both cores "
                "under way; alone it would wait for ever; start the program with "
                "CorePair.run"
            )
        return self._meeting.meet(core, key, payload)


class _Meeting:
    """Turn taking and rendezvous of two threads."""

    def __init__(self):
        self.changed = threading.Condition()
        self.turn = 0
        self.gone = [False, False]
        self.waiting: list[tuple | None] = [None, None]
        self.answer: list[object] = [None, None]
        self.culprit: int | None = None
        self.numbers = itertools.count()

    def wait_for_turn(self, core: int) -> None:
        with self.changed:
            self.changed.wait_for(lambda: self.turn == core)

    def leave(self, core: int) -> None:
        """A program has ended: the other core goes on, or learns that it is alone."""
        with self.changed:
            self.gone[core] = True
            other = 1 - core
            if self.waiting[other] is not None:
                self._answer(other, _deadlock(other, self.waiting[other][0], "ended"))
            self.turn = other
            self.changed.notify_all()

    def meet(self, core: int, key: tuple, payload: object) -> tuple[object, int]:
        with self.changed:
            other = 1 - core
            if self.gone[other]:
                raise _deadlock(core, key, "ended")
            if self.waiting[other] is None:
                return self._hand_over(core, key, payload)
            theirs, their_payload = self.waiting[other]
            refusal = _mismatch(core, key, payload, theirs, their_payload)
            if refusal is not None:
                self._answer(other, refusal)
                raise refusal
            number = next(self.numbers)
            self._answer(other, (payload, number))
            return their_payload, number

    def _hand_over(self, core: int, key: tuple, payload: object) -> tuple[object, int]:
        """Wait for the partner while it runs."""
        self.waiting[core] = (key, payload)
        self.turn = 1 - core
        self.changed.notify_all()
        self.changed.wait_for(lambda: self.answer[core] is not None)
        answer, self.answer[core] = self.answer[core], None
        # subtle: the partner keeps the turn until it waits or ends
        self.changed.wait_for(lambda: self.turn == core)
        if isinstance(answer, MachineError | DTypeError):
            raise answer
        return answer

    def _answer(self, core: int, answer: object) -> None:
        self.waiting[core] = None
        self.answer[core] = answer


def _deadlock(core: int, key: tuple, why: str) -> MachineError:
    return MachineError(
        f"core {core} has reached {_spell(key)} and its partner has {why}; expected "
        "both cores to make the same calls; it would wait for ever; keep control flow "
        "alike"
    )


def _spell(key: tuple) -> str:
    return key[0] if len(key) == 1 else f"{key[0]} with pipe_id {key[1]}"


def _mismatch(core, key, payload, theirs, their_payload) -> Exception | None:
    """Why two calls do not meet, or None."""
    if key != theirs:
        return MachineError(
            f"core {core} has reached {_spell(key)} and its partner {_spell(theirs)}; "
            "expected the same call on both; each would wait for ever; keep control "
            "flow alike"
        )
    if not isinstance(payload, np.ndarray):
        return None
    if payload.shape != their_payload.shape:
        return FreeSizeError(
            f"src has shape {payload.shape} on core {core}, {their_payload.shape} on "
            "the other; expected one shape; both sides of a message are alike; "
            "reshape one of them"
        )
    if payload.dtype != their_payload.dtype:
        return DTypeError(
            f"src has dtype {payload.dtype.name} on core {core} and "
            f"{their_payload.dtype.name} on the other; expected one type; a message "
            "moves bits; cast one of them"
        )
    return None
