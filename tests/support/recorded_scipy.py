"""A program that prints the operations recorded by calls of SciPy; with the argument ``autodiff`` it imports `autodiff` first.

``tests/compgraph/scipy/test_recording.py`` runs it in separate processes.
"""

from __future__ import annotations

import importlib
import json
import sys
import warnings
from typing import Any

import numpy as np

import compgraph as cg
from compgraph import ops
from compgraph.ops import tables
from compgraph.scipy import FAMILIES, policy_of

if "autodiff" in sys.argv:
    importlib.import_module("autodiff")

MODULES: dict[str, Any] = {name: importlib.import_module(name) for name in FAMILIES}
x = cg.variable([[2.0, 0.3, 0.1], [0.3, 1.5, 0.2], [0.1, 0.2, 1.1]])
v = cg.variable([0.3, 0.5, 0.9, 1.4, 0.2])
s = cg.variable(0.4)
t = np.arange(5.0)

CALLS: dict[str, dict[str, Any]] = {
    "scipy.fft": {"fft": lambda f: f(v), "dctn": lambda f: f(x), "fftshift": lambda f: f(v)},
    "scipy.integrate": {"trapezoid": lambda f: f(v), "simpson": lambda f: f(v, x=t)},
    "scipy.interpolate": {
        "CubicSpline": lambda f: f(t, v)(1.5),
        "interp1d": lambda f: f(t, v)(1.5),
        "splrep": lambda f: f(t, v)[1],
    },
    "scipy.linalg": {"solve": lambda f: f(x, v[:3]), "expm": lambda f: f(x), "eigh": lambda f: f(x), "toeplitz": lambda f: f(v)},
    "scipy.ndimage": {"gaussian_filter1d": lambda f: f(v, 1.0), "zoom": lambda f: f(v, 2), "median_filter": lambda f: f(v, 3)},
    "scipy.optimize": {"rosen": lambda f: f(v), "rosen_hess_prod": lambda f: f(v, t)},
    "scipy.signal": {"convolve": lambda f: f(v, v), "lfilter": lambda f: f(v, [1.0, 0.2], t), "welch": lambda f: f(v)[1]},
    "scipy.signal.windows": {"gaussian": lambda f: f(5, s), "kaiser": lambda f: f(5, s)},
    "scipy.sparse": {"csr_array": lambda f: (f(np.eye(3)) @ x, f(x).toarray()), "diags_array": lambda f: f(v).data},
    "scipy.sparse.linalg": {"spsolve": lambda f: f(MODULES["scipy.sparse"].csr_array(x), v[:3])},
    "scipy.spatial": {"distance_matrix": lambda f: f(x, x), "procrustes": lambda f: f(x, np.eye(3))[2]},
    "scipy.spatial.distance": {"pdist": lambda f: f(x), "cosine": lambda f: f(v, t)},
    "scipy.spatial.transform": {"Rotation.from_rotvec": lambda f: f(v[:3]).as_matrix()},
    "scipy.special": {"logsumexp": lambda f: f(x, axis=1), "zeta": lambda f: f(v + 2), "lambertw": lambda f: f(v)},
    "scipy.stats": {"norm.logpdf": lambda f: f(v, s), "pearsonr": lambda f: f(v, t)[0], "rankdata": lambda f: f(v)},
}


def names_of(results: Any) -> list[str]:
    """The operations in the graphs of a call's results."""
    nodes = [each for each in (results if isinstance(results, tuple) else (results,)) if isinstance(each, cg.Node)]
    return [node.opname for node in cg.topological_order(nodes) if node.opname]


def main() -> None:
    """Print ``{module: {function: its operations}}`` as JSON."""
    warnings.simplefilter("ignore")
    recorded: dict[str, dict[str, list[str]]] = {module: {} for module in CALLS}
    for module, calls in CALLS.items():
        for name, call in calls.items():
            function = MODULES[module]
            for part in name.split("."):
                function = getattr(function, part)
            recorded[module][name] = names_of(call(function))
    policy = policy_of("special")
    for name in sorted({*policy.smooth_ufuncs, *policy.piecewise_ufuncs}):
        holder = MODULES["scipy.special"]
        function = getattr(holder._ufuncs if name.startswith("_") else holder, name)
        recorded["scipy.special"][name] = names_of(function(*[2] * (function.nin - 1), s))
    print(json.dumps({"recorded": recorded, "smooth": sorted(smooth()), "rules": sorted(rules())}))


def smooth() -> set[str]:
    """The operations with a derivative, without those internal to `autodiff`."""
    functions = {**tables.FUNCTIONS_BY_OPNAME, **tables._user_functions}
    return {name for name, f in functions.items() if f not in ops.PIECEWISE and not is_of_autodiff(f)}


def is_of_autodiff(function: Any) -> bool:
    """Whether a recorded function is defined in a module of `autodiff`."""
    return str(getattr(function, "__module__", "")).startswith("autodiff")


def rules() -> set[str]:
    """The operations of `compgraph` that have a rule."""
    if "autodiff" not in sys.modules:
        return set()
    importlib.import_module("autodiff.grads").__dir__()  # loads all rules
    every = importlib.import_module("autodiff.rules").rules
    return {name for name in every if not is_of_autodiff(ops.function_by_opname(name))}


if __name__ == "__main__":
    main()
