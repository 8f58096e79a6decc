"""Which products of matrices are computed by code of their own, and which by BLAS.

Code for known lengths takes 0.25 to 0.5 of the time of OpenBLAS 0.3 at 16 to 256 in each length, in either precision, and a tenth
at 8 and less, where a call of BLAS costs more than the product (measured on one thread of a processor with AVX-512). It copies
nothing but columns of a transposed `b`, as many as a tile has, which does not pay for a few rows. Large products are left to
BLAS, which blocks for all caches, and has threads.
"""

from __future__ import annotations

from ..steps import Place, Product
from .placing import Placing

TURNS = 1 << 24  # products of numbers: 256 in each length
FITTING = 1 << 18  # elements of an operand that stay in the cache: 2 MB of doubles
COPIED = 8  # rows of `a` from which on a copy of `b` pays; or
SHORT = 1 << 10  # elements of `b` up to which it always does
PANEL = 256  # bytes of a row of what is copied at once: the widest tile, of four vectors


def append_product(program: Placing, a: Place, b: Place, out: Place) -> None:
    """Append the step of a product of two matrices, or of stacks of them, whose result has the shape of `out`."""
    stack = out.shape[:-2]
    a, b = (_laid_out(program, p) for p in (a, b))
    a, b = (p.broadcast((*stack, *p.shape[-2:])) for p in (a, b))
    program.steps.append(_chosen(program, a, b, out))


def _chosen(program: Placing, a: Place, b: Place, out: Place) -> Product:
    (m, k), n = a.shape[-2:], b.shape[-1]
    if m * k * n > TURNS or max(m * k, k * n) > FITTING:
        return Product((a, b), out)
    if n == 1 and m > 1 and a.strides[-2] == 1:  # a row instead of a column: its elements are computed many at a time
        a, b, out = _transposed(b), _transposed(a), _transposed(out)
        m, n = 1, m
    has_gaps = n > 1 and b.strides[-1] != 1
    if has_gaps and m < COPIED and k * n > SHORT:
        return Product((a, b), out)
    work = (program.work(out.buffer.dtype, k * min(n, PANEL // out.buffer.dtype.itemsize)),) if has_gaps else ()
    return Product((a, b, *work), out, is_small=True)


def _laid_out(program: Placing, place: Place) -> Place:
    """A matrix, or a stack of them, whose rows or columns lie without gaps; a copy if it is not so itself."""
    (m, n), (s, t) = place.shape[-2:], place.strides[-2:]
    if ((t == 1 or n == 1) and (s >= n or m == 1)) or ((s == 1 or m == 1) and (t >= m or n == 1)):
        return place
    return program.copied(place, place.buffer.dtype)


def _transposed(place: Place) -> Place:
    *stack, m, n = place.shape
    *strides, s, t = place.strides
    return Place(place.buffer, place.offset, (*stack, n, m), (*strides, t, s))
