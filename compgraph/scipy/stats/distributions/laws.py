"""The formulas of SciPy's continuous distributions, as they run on nodes.

A distribution of SciPy's is an object with private methods, ``_pdf``, ``_cdf`` and so on, each a formula of the standard
distribution in steps of NumPy's and special functions. `Law` is such an object again whose methods can be given nodes: where the
formula is one of recorded steps it is run as it is, where it is not another one stands in `FORMULAS`, and where SciPy has none
but integrates, or solves an equation, `numeric` is one node.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import FunctionType, MethodType
from typing import Any

import numpy as np
import scipy.special as sc
import scipy.stats as st

from .... import ops
from ....bind import bind
from ....graph import to_values
from ....values import INERT, Value
from .formulas import FORMULAS, NUMERIC, OPAQUE, REFUSED
from .tails import Formula

_SEARCHED = (st.rv_continuous, st.rv_discrete, st.rv_continuous.__mro__[1])


@dataclass(frozen=True)
class Law:
    """A distribution whose formulas can be given nodes.

    Attributes
    ----------
    distribution : rv_continuous
        SciPy's.
    """

    distribution: Any

    def __getattr__(self, name: str) -> Any:
        found = self._formula(name)
        return MethodType(found, self) if found is not None else getattr(self.distribution, name)

    def _formula(self, name: str) -> Formula | None:
        """The function of a method, None where it is none of a class."""
        kind = type(self.distribution)
        if name in NUMERIC.get(kind.__name__, ()):
            return _solved(name)
        if name in ("_pdf", "_logpdf") and kind.__name__ in OPAQUE:
            return _opaque(name)
        for owner in kind.__mro__:
            if (owner.__name__, name) in FORMULAS:
                return FORMULAS[owner.__name__, name]
            if name in owner.__dict__:
                own = owner.__dict__[name]
                relations = _COUNTED if isinstance(self.distribution, st.rv_discrete) else _RELATIONS
                if owner in _SEARCHED and name in relations:
                    return relations[name]
                return own if isinstance(own, FunctionType) else None
        return None


# -------------------------------------------------------------------------------------------- what follows from the others


def _pdf(law: Any, x: Any, *shapes: Any) -> Any:
    if not is_given(law, "_logpdf"):
        raise TypeError(
            f"scipy.stats.{law.distribution.name}: it has no formula of its density, which SciPy takes by differences; "
            "define _pdf or _logpdf"
        )
    return np.exp(law._logpdf(x, *shapes))


def is_given(law: Any, name: str) -> bool:
    """Whether there is a formula, of the class or of ours."""
    return any((k.__name__, name) in FORMULAS or (name in vars(k) and k not in _SEARCHED) for k in type(law.distribution).__mro__)


def _logcdf(law: Any, x: Any, *shapes: Any) -> Any:
    below = law._cdf(x, *shapes)
    lower = below < 0.5
    return np.where(lower, np.log(np.where(lower, below, 1)), np.log1p(-law._sf(x, *shapes)))


def _logsf(law: Any, x: Any, *shapes: Any) -> Any:
    above = law._sf(x, *shapes)
    upper = above < 0.5
    return np.where(upper, np.log(np.where(upper, above, 1)), np.log1p(-law._cdf(x, *shapes)))


def law_of(distribution: Any, method: str) -> Law:
    """A distribution as a law, if it has one."""
    advice = REFUSED.get(type(distribution).__name__)
    if advice is not None:
        raise TypeError(f"scipy.stats.{distribution.name}.{method}: no derivative of it is known; use {advice}")
    return Law(distribution)


def _opaque(name: str) -> Formula:
    def formula(law: Any, x: Any, *shapes: Any) -> Any:
        if any(isinstance(a, Value) and type(a) not in INERT for a in (x, *shapes)):
            raise TypeError(
                f"scipy.stats.{law.distribution.name}: SciPy has its density as numbers alone, and no derivative of that is "
                "known (of cdf and ppf the first is); give plain numbers (x.value)"
            )
        return getattr(law.distribution, name)(*to_values((x, *shapes)))

    return formula


def _solved(name: str) -> Formula:
    return lambda law, x, *shapes: bind(numeric, (x, *shapes), {"law": law, "name": name})


_RELATIONS: dict[str, Formula] = {
    "_pdf": _pdf,
    "_logpdf": lambda law, x, *shapes: np.log(law._pdf(x, *shapes)),
    "_cdf": _solved("_cdf"),
    "_sf": lambda law, x, *shapes: 1.0 - law._cdf(x, *shapes),
    "_logcdf": _logcdf,
    "_logsf": _logsf,
    "_ppf": _solved("_ppf"),
    "_isf": lambda law, q, *shapes: law._ppf(1.0 - q, *shapes),
}


def _summed(law: Any, k: Any, *shapes: Any) -> Any:
    """The sum of the masses up to a number."""
    low = np.min(np.asarray(law.distribution._get_support(*to_values(shapes))[0]))
    if np.isinf(low):
        raise TypeError(f"scipy.stats.{law.distribution.name}.cdf: it has no formula and no least number; sum pmf over a range")
    counts = np.arange(low, np.max(to_values(k)) + 1)
    k, *columns = [np.expand_dims(a, -1) for a in (k, *shapes)]
    inside = counts <= k
    return np.sum(np.where(inside, law._pmf(counts, *columns), 0), axis=-1)


def _entropy(law: Any, *shapes: Any) -> Any:
    low, high = [np.asarray(end) for end in law.distribution._get_support(*to_values(shapes))]
    if np.isinf(np.max(high)) or np.isinf(np.min(low)):
        raise TypeError(
            f"scipy.stats.{law.distribution.name}.entropy: a sum without end; sum scipy.special.entr of pmf over a range that is "
            "long enough"
        )
    counts = np.arange(np.min(low), np.max(high) + 1)
    masses = law._pmf(counts, *[np.expand_dims(a, -1) for a in shapes])
    return np.sum(sc.entr(np.where((counts >= low[..., None]) & (counts <= high[..., None]), masses, 0)), axis=-1)


# Of discrete distributions
_COUNTED: dict[str, Formula] = {
    "_pmf": lambda law, k, *shapes: law._cdf(k, *shapes) - law._cdf(k - 1, *shapes),
    "_logpmf": lambda law, k, *shapes: np.log(law._pmf(k, *shapes)),
    "_cdf": _summed,
    "_sf": lambda law, k, *shapes: 1.0 - law._cdf(k, *shapes),
    "_logcdf": lambda law, k, *shapes: np.log(law._cdf(k, *shapes)),
    "_logsf": lambda law, k, *shapes: np.log(law._sf(k, *shapes)),
    "_entropy": _entropy,
}


# -------------------------------------------------------------------------------------------- what SciPy integrates, or solves


def numeric(x: Any, *shapes: Any, law: Law, name: str) -> Any:
    """A distribution function, or the inverse of one, as SciPy computes it."""
    arrays = np.broadcast_arrays(x, *shapes)  # some of SciPy's loops go through them side by side
    return getattr(law.distribution, name)(*arrays)


ops.enter(numeric, "scipy_stats_numeric")


FORMULAS["binom_gen", "_entropy"] = _entropy
