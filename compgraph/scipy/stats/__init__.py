"""``scipy.stats``."""

from __future__ import annotations

import scipy.stats as st

from ..policy import Policy
from . import continuous, discrete, moments
from .pieces import apply_where, lazyselect

_OBJECTS = frozenset({name for name in st.__all__ if not callable(getattr(st, name)) or isinstance(getattr(st, name), st.rv_continuous | st.rv_discrete)})

POLICY = Policy(
    module="scipy.stats",
    instead={
        **{f"rv_continuous.{name}": method for name, method in (continuous.METHODS | moments.METHODS).items()},
        **{f"rv_discrete.{name}": method for name, method in discrete.METHODS.items()},
        "rv_discrete.rvs": moments.rvs,
        "_continuous_distns.xpx.apply_where": apply_where,
        "_continuous_distns._lazyselect": lazyselect,
    },
    plain=_OBJECTS | {"rv_continuous", "rv_discrete", "rv_histogram"},
)
