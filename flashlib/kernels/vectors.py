"""Write vector instructions into a kernel, one Python call each (chapter 9).

Numba compiles loops and hopes that LLVM turns them into vectors. Where hope
is not enough, an *intrinsic* takes over: a Python function that runs at
compile time and appends instructions of LLVM's own vector types. `Vectors` is
the small vocabulary that these intrinsics share. LLVM maps a type such as
``<8 x float>`` to whatever registers the processor has, so a width that the
processor lacks is slower and still right.

None of these instructions may be reordered: what is written is what is
computed, to the bit.
"""

from collections.abc import Callable, Sequence

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils, errors

from flashlib.kernels.targets import TARGETS, Target

__all__ = ["Vectors", "literal_target"]

INT = ir.IntType(64)
INT32 = ir.IntType(32)
# subtle: Numba adds the fast-math permissions of a kernel to every float
# instruction without flags, and reassociation would undo the rounding tricks
# written here. "afn" permits approximate library calls, which an addition
# does not make; it only keeps the others away.
EXACT = ("afn",)


def literal_target(target: types.Type) -> Target:
    """Return the target that an intrinsic was called with, a compile-time constant."""
    if not isinstance(target, types.IntegerLiteral):
        raise errors.RequireLiteralValue("target must be a compile-time constant")
    return TARGETS[target.literal_value]


class Vectors:
    """Emit operations on vectors of one float type.

    Parameters
    ----------
    context, builder
        Numba's target context and llvmlite's builder.
    dtype : numba type
        float32 or float64.
    target : Target
        Decides the lanes per vector, and whether multiply-add is one instruction.
    """

    def __init__(self, context, builder: ir.IRBuilder, dtype, target: Target):
        self.context, self.builder, self.target = context, builder, target
        self.bits = dtype.bitwidth
        self.dtype = np.dtype(f"f{self.bits // 8}")
        self.lanes = target.vector_bytes * 8 // self.bits
        self.element = ir.FloatType() if self.bits == 32 else ir.DoubleType()
        self.type = ir.VectorType(self.element, self.lanes)
        self.integers = ir.VectorType(ir.IntType(self.bits), self.lanes)

    def pointer(self, array_type, array, offset):
        """Return the address of element `offset` of a contiguous array."""
        data = self.context.make_array(array_type)(self.context, self.builder, array)
        return self.builder.gep(data.data, [offset])

    def rows(self, array_type, array, offset, count: int) -> list:
        """Return `count` row pointers out of an int64 array of addresses."""
        first = self.pointer(array_type, array, offset)
        addresses = [
            self.builder.load(self.builder.gep(first, [INT(n)])) for n in range(count)
        ]
        kind = self.element.as_pointer()
        return [self.builder.inttoptr(address, kind) for address in addresses]

    def load(self, pointer, offset, width: int | None = None):
        """Load one vector; the address need not be aligned."""
        kind = self.type if width is None else ir.VectorType(self.element, width)
        place = self.builder.gep(pointer, [offset])
        wide = self.builder.bitcast(place, kind.as_pointer())
        return self.builder.load(wide, align=self.bits // 8)

    def store(self, vector, pointer, offset) -> None:
        """Store one vector, of any width."""
        place = self.builder.gep(pointer, [offset])
        wide = self.builder.bitcast(place, vector.type.as_pointer())
        self.builder.store(vector, wide, align=self.bits // 8)

    def copy(self, source, source_at, target, target_at) -> None:
        """Copy one element."""
        value = self.builder.load(self.builder.gep(source, [source_at]))
        self.builder.store(value, self.builder.gep(target, [target_at]))

    def splat(self, scalar):
        """Repeat one value in every lane."""
        undefined = ir.Constant(self.type, ir.Undefined)
        first = self.builder.insert_element(undefined, scalar, INT32(0))
        lanes = ir.Constant(ir.VectorType(INT32, self.lanes), [0] * self.lanes)
        return self.builder.shuffle_vector(first, undefined, lanes)

    def constant(self, number: float):
        """Return a vector of one number, rounded to the element type."""
        rounded = float(self.dtype.type(number))
        return ir.Constant(self.type, [ir.Constant(self.element, rounded)] * self.lanes)

    def integer(self, number: int):
        """Return a vector of one integer, as wide as the element type."""
        element = ir.IntType(self.bits)
        return ir.Constant(self.integers, [ir.Constant(element, number)] * self.lanes)

    def add(self, a, b):
        """Return ``a + b``."""
        return self.builder.fadd(a, b, flags=EXACT)

    def sub(self, a, b):
        """Return ``a - b``."""
        return self.builder.fsub(a, b, flags=EXACT)

    def negative(self, x):
        """Return ``-x``."""
        return self.builder.fneg(x, flags=EXACT)

    def mul(self, a, b):
        """Return ``a * b``."""
        return self.builder.fmul(a, b, flags=EXACT)

    def div(self, a, b):
        """Return ``a / b``."""
        return self.builder.fdiv(a, b, flags=EXACT)

    def compare(self, relation: str, a, b):
        """Return which lanes satisfy ``a relation b``; a NaN satisfies nothing."""
        return self.builder.fcmp_ordered(relation, a, b, flags=EXACT)

    def fma(self, a, b, c):
        """Return ``a * b + c``, rounded once where the processor can."""
        if not self.target.fused:
            return self.add(self.mul(a, b), c)
        return self._call("fma", a, b, c)

    def magnitude(self, x):
        """Return ``|x|``."""
        return self._call("fabs", x)

    def with_sign(self, x, sign):
        """Return `x` with the sign of `sign`."""
        return self._call("copysign", x, sign)

    def maximum(self, a, b):
        """Return ``a if a > b else b``: a NaN in `a` is passed over."""
        return self.builder.select(self.compare(">", a, b), a, b)

    def loop(self, n, start: Sequence, body: Callable[[object, list], list]) -> list:
        """Emit a loop that carries values in registers.

        Parameters
        ----------
        n : LLVM integer
            Number of turns, 0 included.
        start : sequence of LLVM values
            What is carried into the first turn.
        body : callable
            ``body(i, carried) -> carried``, emits one turn.

        Returns
        -------
        list of LLVM values
            What the last turn carried out (`start` for no turn).
        """
        builder, before = self.builder, self.builder.block
        loop, after = (builder.append_basic_block(name) for name in ("turn", "done"))
        builder.cbranch(builder.icmp_signed(">", n, INT(0)), loop, after)
        builder.position_at_end(loop)
        i = builder.phi(INT)
        carried = [builder.phi(value.type) for value in start]
        results = body(i, carried)
        following, last = builder.add(i, INT(1)), builder.block
        for phi, first, next_ in zip(
            [i, *carried], [INT(0), *start], [following, *results], strict=True
        ):
            phi.add_incoming(first, before)
            phi.add_incoming(next_, last)
        builder.cbranch(builder.icmp_signed("<", following, n), loop, after)
        builder.position_at_end(after)
        finals = [builder.phi(value.type) for value in start]
        for phi, first, result in zip(finals, start, results, strict=True):
            phi.add_incoming(first, before)
            phi.add_incoming(result, last)
        return finals

    def two_sum_add(self, total, compensation, x):
        """Return ``total + x``, and what rounding has taken from it so far.

        subtle: the error is exact, whichever of the two is larger (Knuth's form).
        So adding 0 changes nothing, and no lane can tell how many empty tiles its
        neighbors made it pass.
        """
        x = self.add(x, compensation)
        after = self.add(total, x)
        part = self.sub(after, total)
        error = self.add(self.sub(total, self.sub(after, part)), self.sub(x, part))
        return after, error

    def loop_in_pieces(self, n, start: Sequence, body: Callable, most: int) -> list:
        """Emit :meth:`loop` over sums, `most` turns at a time.

        Every piece sums from `start`, which must be 0, and is then added to the
        pieces before: the rounding errors of a long sum do not pile up in one
        chain.
        """
        builder, whole = self.builder, INT(most)
        short = builder.icmp_signed("<=", n, whole)
        # compiler: a loop of its own for the usual length keeps its sums in
        # registers; inside the other one there would not be enough of them.
        with builder.if_else(short) as (then, otherwise):
            with then:
                usual, usual_end = self.loop(n, start, body), builder.block
            with otherwise:
                sums, end = self._pieces(n, start, body, whole), builder.block
        totals = [builder.phi(value.type) for value in start]
        for phi, one, other in zip(totals, usual, sums, strict=True):
            phi.add_incoming(one, usual_end)
            phi.add_incoming(other, end)
        return totals

    def _pieces(self, n, start: Sequence, body: Callable, whole) -> list:
        builder = self.builder
        pieces = builder.sdiv(builder.add(n, builder.sub(whole, INT(1))), whole)

        def piece(i, totals):
            at = builder.mul(i, whole)
            left = builder.sub(n, at)
            turns = builder.select(builder.icmp_signed("<", left, whole), left, whole)
            sums = self.loop(
                turns, start, lambda j, sums: body(builder.add(at, j), sums)
            )
            return [self.add(a, b) for a, b in zip(totals, sums, strict=True)]

        return self.loop(pieces, start, piece)

    def reduce(self, combine: Callable, vector):
        """Combine the lanes of a vector into one value, halves with halves."""
        width = self.lanes
        while width > 1:
            width //= 2
            halves = [
                self.builder.shuffle_vector(
                    vector,
                    ir.Constant(vector.type, ir.Undefined),
                    ir.Constant(
                        ir.VectorType(INT32, width), list(range(at, at + width))
                    ),
                )
                for at in (0, width)
            ]
            vector = combine(*halves)
        return self.builder.extract_element(vector, INT32(0))

    def interleave(self, vectors: list):
        """Return one wide vector: the first lanes of all, the second lanes of all ...

        Rows become columns; the number of vectors must be a power of two.
        """
        if len(vectors) == 1:
            return vectors[0]
        even, odd = self.interleave(vectors[::2]), self.interleave(vectors[1::2])
        n = even.type.count
        order = [i // 2 + i % 2 * n for i in range(2 * n)]
        kind = ir.VectorType(INT32, 2 * n)
        return self.builder.shuffle_vector(even, odd, ir.Constant(kind, order))

    def split(self, wide, width: int) -> list:
        """Cut a wide vector into vectors of `width` lanes."""
        undefined = ir.Constant(wide.type, ir.Undefined)
        kind = ir.VectorType(INT32, width)
        return [
            self.builder.shuffle_vector(
                wide, undefined, ir.Constant(kind, list(range(at, at + width)))
            )
            for at in range(0, wide.type.count, width)
        ]

    def _call(self, name: str, *operands):
        kind = operands[0].type
        lanes = f"v{self.lanes}" if kind == self.type else ""
        function = cgutils.get_or_insert_function(
            self.builder.module,
            ir.FunctionType(kind, [kind] * len(operands)),
            f"llvm.{name}.{lanes}f{self.bits}",
        )
        return self.builder.call(function, operands)
