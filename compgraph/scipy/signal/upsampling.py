"""Filters between sampling rates."""

from __future__ import annotations

from typing import Any

import scipy.signal

from ... import ops
from ...bind import bind
from .filters import arrays

ops.register_operation(scipy.signal.upfirdn, "scipy_signal_upfirdn")


def upfirdn(h: object, x: object, up: int = 1, down: int = 1, axis: int = -1, mode: str = "constant", cval: int = 0) -> Any:
    """As ``scipy.signal.upfirdn``, with zeros around the signal."""
    if mode != "constant" or cval:
        raise TypeError(
            f"scipy.signal.upfirdn on nodes: mode={mode!r}, cval={cval!r} has no derivative. Leave them out to pad with zeros, "
            "or pad the signal by np.pad"
        )
    return bind(scipy.signal.upfirdn, arrays(h, x), {"up": up, "down": down, "axis": axis})
