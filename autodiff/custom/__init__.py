"""Functions with a derivative of their own: declared, recomputed, by the implicit function theorem, by adjoint methods."""

from . import compiled as compiled  # answers for compiled functions that are called on nodes
from . import imported as imported  # rules of functions of other libraries
from . import scipy as scipy  # names who answers for functions of SciPy's
from .call import Opaque as Opaque
from .call import has_node as has_node
from .call import instantiate_zeros as instantiate_zeros
from .call import transpose_pull as transpose_pull
from .checkpoint import checkpoint, checkpointed_chain
from .custom_gradient import custom_gradient
from .implicit import fixed_point, root
from .nested import parameters as parameters
from .ode import odeint

__all__ = ["checkpoint", "checkpointed_chain", "custom_gradient", "fixed_point", "odeint", "root"]
