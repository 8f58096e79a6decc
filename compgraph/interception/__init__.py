"""How functions that have no protocol, SciPy's above all, come to ask the nodes among their arguments.

NumPy asks arrays by its protocols (``__array_function__``); SciPy has none. So the Python functions of SciPy that users call
are given other code, once, that looks for nodes among the arguments; everything else about them stays. What is done when a node
is found stands in the room `scipy`. ``README.md`` tells the whole.
"""

from .arrivals import Arrivals, is_loading
from .draws import UNSEEDED, Watching, asked_for_draws, asking_for_draws, known
from .exchanged import exchange, holds_node, original_of, switch
from .fft_backend import behind
from .generators import generators_behind, state_of
from .import_hooks import adapt_imported
from .libraries import is_library
from .names import intercepted, interception, lent
from .questions import is_bound_here

__all__ = [
    "UNSEEDED", "Arrivals", "Watching", "adapt_imported", "asked_for_draws", "asking_for_draws", "behind", "exchange",
    "generators_behind", "holds_node", "intercepted", "interception", "is_bound_here", "is_library", "is_loading", "known",
    "lent", "original_of", "state_of", "switch",
]  # fmt: skip
