"""Lowering of functions of SciPy that are compiled for some values of an operand."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.special

from ..buffer_ir import BufferView
from .lowering_state import EXACT_BITS, UNSUPPORTED, LoweringState


def _hurwitz_zeta(state: LoweringState, item: Any) -> str:
    """Lower ``zeta(2, x)``, the trigamma function, which is the derivative of psi."""
    order, x = map(state.operand, item.args)
    dtype = np.asarray(item.raw_value).dtype
    if not isinstance(x, BufferView) or item.options or dtype.kind != "f":
        return UNSUPPORTED
    if isinstance(order, BufferView) or order != 2:
        return "zeta is compiled only of order 2"
    if state.is_exact:
        return EXACT_BITS
    state.append_map("trigamma", (x,), state.result(item))
    return ""


LOWERINGS: dict[Any, Any] = {scipy.special._ufuncs._zeta: _hurwitz_zeta}
