"""How functions that ask no array, SciPy's above all, come to ask the nodes among their arguments.

NumPy has protocols by which an array is asked; SciPy has none. So the Python functions of SciPy that users call are given
other code, once, that looks whether a node is among the arguments; everything else about them stays. What is then done with
each is said in the room `scipy`.
"""

from .draws import refusing_draws
from .exchanged import exchange, holds_node, original_of, switch
from .fft_backend import behind
from .names import intercepted, interception, lent

__all__ = ["behind", "exchange", "holds_node", "intercepted", "interception", "lent", "original_of", "refusing_draws", "switch"]
