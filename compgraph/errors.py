"""The errors and warnings of `compgraph`.

Errors are subclasses of the built-in error that NumPy would raise (TypeError, RuntimeError ...), and warnings of RuntimeWarning.
Warnings have categories by subject, and are issued at the line of the user's code. Those about derivatives are in `autodiff`:
`autodiff.DerivativeWarning`, `autodiff.DetachedGradientError` and `autodiff.LostGraphError`.
"""

from .compiled import CompileWarning
from .debugging import NonFiniteError
from .guards import GuardError, GuardWarning, HiddenError
from .protocols import UnsizedError
from .tracing import LeakError, LeakWarning
from .values import BatchedValueError

__all__ = [
    "BatchedValueError", "CompileWarning", "GuardError", "GuardWarning", "HiddenError", "LeakError", "LeakWarning",
    "NonFiniteError", "UnsizedError",
]  # fmt: skip
