"""How each operation computes many examples at once: arrays have the axis of examples first, and all of NumPy's axes shift.

`of_examples` does one call. The kind of a function (`ops.OpSpec`) says how; a way of its own is found under its
opname in `own`. Where nothing else is right the examples are computed one by one and stacked.
"""

from . import along, indexing, kernels, products, shapes  # they enter their ways
from .call import Call, OneByOneError, front, lifted
from .indexing import Where, located
from .table import LOOPED, of_examples, own, stacked

__all__ = ["LOOPED", "Call", "OneByOneError", "Where", "along", "front", "indexing", "kernels", "lifted", "located",
           "of_examples", "own", "products", "shapes", "stacked"]  # fmt: skip
