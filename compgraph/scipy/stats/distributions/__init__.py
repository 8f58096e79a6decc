"""The methods of SciPy's distributions of one variable."""

from .continuous import METHODS as OF_CONTINUOUS
from .discrete import METHODS as OF_DISCRETE
from .moments import METHODS as OF_BOTH
from .moments import entropy, rvs

__all__ = ["OF_BOTH", "OF_CONTINUOUS", "OF_DISCRETE", "entropy", "rvs"]
