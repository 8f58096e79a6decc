"""The command ``python -m compgraph``: versions, the cache on disk, and a test of the installation."""

from __future__ import annotations

import argparse
import importlib.util
import sys
import tempfile
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import compgraph as cg

from .compiled import cache_folder, cached_files
from .view import can_render


def _print_caches() -> None:
    files = cached_files()
    size = sum(path.lstat().st_size for path in files)
    print(f"Compiled programs  {cache_folder()}: {_count(files)}, {size / 2**20:.1f} MiB")
    print("\nRemove them: python -m compgraph --clear-caches. Use another folder: the environment variable COMPGRAPH_CACHE.")
    print("Test the installation: python -m compgraph --self-test.")


def _clear_caches() -> None:
    files = cached_files()
    for path in files:
        path.unlink(missing_ok=True)  # another process may remove it
    print(f"Removed {_count(files)} from {cache_folder()}.")


def _count(files: list[Path]) -> str:
    return f"{len(files)} file{'s' * (len(files) != 1)}"


# ------------------------------------------------------------------------------------------- self-test


# A string that is compiled on use: the interception of NumPy applies to the code of users, not to the modules of this package.
PROGRAM = """
import numpy as np
import scipy.linalg
import scipy.special

def recurrence(x):
    y = np.zeros(x.shape)
    y[0] = x[0]
    for i in range(1, len(x)):
        y[i] = np.tanh(y[i - 1]) + x[i] ** 2
    return np.sum(y * y)

def solution(a, b):
    return scipy.special.erf(scipy.linalg.solve(a, b))
"""


def _program() -> dict[str, Any]:
    namespace: dict[str, Any] = {"__name__": "self_test"}
    exec(compile(PROGRAM, "<self-test>", "exec"), namespace)
    return namespace


def _check_derivatives() -> str:
    import autodiff as ad

    functions, random = _program(), np.random.default_rng(0)
    x, a, b = random.normal(size=5), np.eye(3) + 0.1 * random.normal(size=(3, 3)), random.normal(size=3)
    ad.check_grads(functions["recurrence"], [x])  # compares with central differences
    ad.check_grads(functions["solution"], [a, b])
    return "agree with central differences, in both modes, to second order"


def _check_compilation() -> str:
    import autodiff as ad

    if importlib.util.find_spec("llvmlite") is None:
        return 'skipped: llvmlite is not installed (pip install "compgraph[jit]"); functions run as NumPy'
    x, gradient = np.linspace(0.1, 0.9, 50), ad.grad(_program()["recurrence"])
    compiled = cg.jit(gradient, cache=False).compile(x)
    np.testing.assert_allclose(compiled(x), gradient(x), rtol=1e-12)
    if ": compiled" not in compiled.report().partition("\n")[0]:
        raise RuntimeError(compiled.report())
    return "a compiled gradient agrees with NumPy's"


def _check_drawing() -> str:
    node, formats = np.sin(cg.variable(0.5, "x")) * 2, ("html", "svg") if can_render() else ("html",)
    with tempfile.TemporaryDirectory() as folder:
        for format in formats:
            path = Path(folder, f"graph.{format}")
            cg.visualize_at(node, path)
            if f"<{format}" not in path.read_text(encoding="utf-8"):
                raise RuntimeError(f"the file has no {format.upper()}")
    return "HTML and SVG" if "svg" in formats else "HTML; SVG is skipped: Graphviz is not installed (pip install pygraphviz)"


CHECKS: dict[str, Callable[[], str]] = {
    "derivatives": _check_derivatives,
    "compilation": _check_compilation,
    "drawing": _check_drawing,
}


def self_test() -> bool:
    """Run all checks, print the result of each and a verdict, and return whether all passed."""
    failed_checks = []
    for name, check in CHECKS.items():
        try:
            print(f"{name:<13}{check()}", flush=True)
        except Exception:
            failed_checks.append(name)
            print(f"{name:<13}FAILED", flush=True)
            traceback.print_exc()
    if failed_checks:
        print(f"Self-test failed: {', '.join(failed_checks)}. Report this output with that of python -m compgraph.")
    else:
        print("Self-test passed.")
    return not failed_checks


def main(arguments: list[str] | None = None) -> int:
    """Run the command, and return its exit status."""
    parser = argparse.ArgumentParser(
        "python -m compgraph",
        description="Print the versions of Python and all dependencies, and the cache of compiled programs.",
    )
    actions = parser.add_mutually_exclusive_group()
    actions.add_argument("--clear-caches", action="store_true", help="remove the compiled programs on disk")
    self_test_help = "check derivatives, compilation and drawing, in a few seconds; the exit status is 1 if a check fails"
    actions.add_argument("--self-test", action="store_true", help=self_test_help)
    options = parser.parse_args(arguments)
    if options.self_test:
        return 0 if self_test() else 1
    if options.clear_caches:
        _clear_caches()
        return 0
    cg.show_versions()
    print()
    _print_caches()
    return 0


if __name__ == "__main__":
    sys.exit(main())
