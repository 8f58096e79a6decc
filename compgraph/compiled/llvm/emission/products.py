"""Products of matrices become calls of BLAS, without Python between them."""

from __future__ import annotations

from contextlib import ExitStack

from .. import elementwise
from ..code import BYTE, INT, POINTER, Code
from ..steps import Place, Product
from .addresses import Base, Turns, address_of


def emit_blas(code: Code, product: Product, base: Base, turns: Turns) -> None:
    """Write the code of a product: a loop over the stack, and one call of ``gemm`` for each matrix.

    Fortran's matrices lie by columns. So what it sees is ``out.T = b.T @ a.T``, and a matrix that lies by rows is given as it is.
    """
    left, right = product.operands
    (m, k), n = left.shape[-2:], right.shape[-1]
    constant = code.module.constant
    kind = elementwise.type_of(product.out.buffer.dtype)
    length = [constant(code.number(size, INT)) for size in (n, m, k)]
    (trans_b, lead_b), (trans_a, lead_a) = (_as_laid(p) for p in (right, left))
    letters = [constant(code.number(ord(letter), BYTE)) for letter in (trans_b, trans_a)]
    leads = [constant(code.number(size, INT)) for size in (lead_b, lead_a, n)]
    one, zero = (constant(code.number(x, kind)) for x in (1.0, 0.0))
    name = "blas_dgemm" if product.out.buffer.dtype.itemsize == 8 else "blas_sgemm"
    code.module.declare(name, None, [POINTER] * 13)
    with ExitStack() as loops:
        indices = [loops.enter_context(code.loop(0, size)).index for size in product.out.shape[:-2]]
        a, b, out = (
            address_of(code, place, base, turns, zip(place.strides, indices, strict=False))
            for place in (left, right, product.out)
        )
        code.run(name, *letters, *length, one, b, leads[0], a, leads[1], zero, out, leads[2])


def _as_laid(place: Place) -> tuple[str, int]:
    """How ``gemm`` is told the transpose of a matrix: not transposed ("N") if it lies by rows; and the stride between rows."""
    (m, n), (s, t) = place.shape[-2:], place.strides[-2:]
    if (t == 1 or n == 1) and (s >= n or m == 1):
        return "N", max(s, n) if m > 1 else n
    return "T", max(t, m) if n > 1 else m
