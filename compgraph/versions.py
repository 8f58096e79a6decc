"""The version of the distribution, and the versions of everything that a bug report needs."""

from __future__ import annotations

import importlib.metadata
import platform
import tomllib
from pathlib import Path

import numpy as np

from . import compiled

# The dependencies of the extras, except tools for tests and documentation.
DISTRIBUTIONS = (
    *("numpy", "scipy", "optree", "tqdm", "graphviz", "pygraphviz", "llvmlite"),
    *("jax", "torch", "array-api-compat", "array-api-strict", "sympy", "dask", "distributed", "cloudpickle", "tblib"),
    *("matplotlib", "pillow", "scikit-learn", "pandas", "xarray", "numba", "h5py", "mpmath", "autograd", "mygrad"),
)


def _own_version() -> str:
    """Return the version that a checkout's ``pyproject.toml`` states, or else that of the installed distribution."""
    try:  # the installed version may differ from the checkout's
        project = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text(encoding="utf-8"))["project"]
        if project["name"] == "compgraph":
            return str(project["version"])
    except (OSError, ValueError, KeyError):  # installed, or beside the file of another project
        pass
    try:
        return importlib.metadata.version("compgraph")
    except importlib.metadata.PackageNotFoundError:
        return "unknown"


def _version_of(distribution: str) -> str:
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return "not installed"


def _blas() -> str:
    blas = np.show_config(mode="dicts").get("Build Dependencies", {}).get("blas", {})
    return f"{blas.get('name', 'unknown')} {blas.get('version', '')}".strip()


def show_versions() -> None:
    """Print the versions of Python, NumPy, this package and all optional dependencies, for bug reports.

    Versions are read from the metadata of installed distributions, so no package is imported.

    See Also
    --------
    numpy.show_config : How NumPy was built.

    Examples
    --------
    >>> import compgraph as cg
    >>> cg.show_versions()  # doctest: +ELLIPSIS
    compgraph         ...
    Python            3...
    platform          ...
    processors        ...
    BLAS of NumPy     ...
    numpy             2...
    scipy             1...
    """
    rows = {
        "compgraph": __version__,
        "Python": f"{platform.python_version()} ({platform.python_implementation()})",
        "platform": platform.platform(),
        "processors": str(compiled.processors()),
        "BLAS of NumPy": _blas(),
        **{name: _version_of(name) for name in DISTRIBUTIONS},
    }
    for name, version in rows.items():
        print(f"{name:<18}{version}")


__version__ = _own_version()
