"""From nests and products to code: loops, vectors, calls."""

from .nests import emit_nest
from .products import emit_product

__all__ = ["emit_nest", "emit_product"]
