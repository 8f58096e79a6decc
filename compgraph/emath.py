"""The functions of ``numpy.emath``, complex where no real number will do, with ``name=``: ``cg.emath.sqrt(x, name="y")``."""

from __future__ import annotations

import numpy as np

from .protocols import namespace

__getattr__, __dir__ = namespace(np.emath, __name__)
