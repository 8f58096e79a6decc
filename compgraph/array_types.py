"""Types of arrays and numbers, for annotations."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

__all__ = ["Array", "Axis", "Operand"]

Array: TypeAlias = NDArray[Any] | np.number[Any] | np.bool_  # NumPy's scalars have the attributes of 0-d arrays
Operand: TypeAlias = NDArray[Any] | np.number[Any] | np.bool_ | complex  # the operands of arithmetic
Axis: TypeAlias = int | tuple[int, ...] | None  # the axes of a reduction
