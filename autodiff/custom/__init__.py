"""Custom derivatives: user-defined ones, checkpointing, the implicit function theorem, and adjoint equations."""

from . import compiled as compiled  # registers the derivatives of compiled and of imported functions
from . import scipy as scipy  # registers replacements of SciPy's functions
from .call import CallFunction as CallFunction
from .call import has_node as has_node
from .call import instantiate_zeros as instantiate_zeros
from .call import transpose_pull as transpose_pull
from .checkpoint import checkpoint, checkpointed_chain
from .custom_gradient import custom_gradient
from .implicit import fixed_point, root
from .nested import parameters as parameters
from .ode import odeint

__all__ = ["checkpoint", "checkpointed_chain", "custom_gradient", "fixed_point", "odeint", "root"]
