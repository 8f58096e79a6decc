"""Products and convolutions: calls of functions that are written for their shapes, or of BLAS."""

from __future__ import annotations

from ..code import INT, Code
from ..machine import processor
from ..refusal import refuse
from ..steps import Convolution, Product
from .addresses import Base, Turns, address_of
from .products import emit_blas
from .tiling import convolution, small_product


def emit_product(code: Code, step: Product, base: Base, turns: Turns) -> None:
    """Write the code of a product."""
    if not step.is_small:
        emit_blas(code, step, base, turns)
        return
    given = [address_of(code, place, base, turns, ()) for place in (step.out, *step.operands)]
    code.run(small_product(code.module, step, processor()[2]), *given)


def emit_convolution(code: Code, step: Convolution, base: Base, turns: Turns) -> None:
    """Write the code of a convolution; it refuses where NumPy has to be asked."""
    given = [address_of(code, place, base, turns, ()) for place in (step.out, *step.operands)]
    wrong = code.call(convolution(code.module, step, processor()[2]), INT, *given)
    if step.kind != "forward":
        refuse(code, code.compare("ne", wrong, code.number(0, INT)))
