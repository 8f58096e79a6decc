"""Outcomes of the same programs in several packages: each cell of ``docs/comparison.md`` is a run.

Run ``python benchmarks/comparing.py`` (with the extra ``bench``) to print the tables, with ``--write`` to put them into the page.
A package that is not installed has a dash. A cell is "yes" if the derivative equals a central difference, otherwise the outcome.
"""

from __future__ import annotations

import argparse
import functools
import importlib
import textwrap
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from compared_programs import LEAVING, OWN, UNCHANGED

PAGE = Path(__file__).resolve().parent.parent / "docs" / "comparison.md"
PEERS = ("compgraph", "autograd", "mygrad", "jax", "torch")
TITLES = {"compgraph": "compgraph", "autograd": "autograd", "mygrad": "MyGrad", "jax": "JAX", "torch": "PyTorch"}
X = np.array([0.7, 1.3, 0.4])
# Errors in the order of their numbers in the tables.
ERRORS = (
    "TypeError", "ValueError", "AttributeError", "RuntimeError", "TracerArrayConversionError", "ConcretizationTypeError",
    "TracerBoolConversionError", "UFuncTypeError", "NotImplementedError", "ZeroDivisionError",
)  # fmt: skip
NUMBERS = ("¹", "²", "³", "⁴", "⁵", "⁶", "⁷", "⁸", "⁹", "¹⁰")

# ------------------------------------------------------------------------------------------------------------- running them


def available() -> set[str]:
    """The peers that are installed."""
    result = set()
    for peer in PEERS:
        try:
            importlib.import_module(peer)
        except ImportError:
            continue
        result.add(peer)
    return result


def namespace(peer: str) -> dict[str, Any]:
    """The namespace of programs: NumPy and SciPy under their own names, and the peer under its usual ones."""
    names: dict[str, Any] = {
        "np": np,
        "X": X,
        "importlib": importlib,
        "agreement": agreement,
        "format_value": format_value,
        "error_of": error_of,
    }
    for name in ("math", "pandas", "scipy"):
        names[name] = importlib.import_module(name)
    for part in ("special", "linalg", "stats", "interpolate", "integrate", "optimize", "sparse"):
        importlib.import_module(f"scipy.{part}")
    if peer == "compgraph":
        names |= {"cg": importlib.import_module("compgraph"), "ad": importlib.import_module("autodiff")}
    elif peer == "autograd":
        names |= {"autograd": importlib.import_module("autograd"), "anp": importlib.import_module("autograd.numpy")}
    elif peer == "mygrad":
        names["mg"] = importlib.import_module("mygrad")
    elif peer == "jax":
        names |= {"jax": importlib.import_module("jax"), "jnp": importlib.import_module("jax.numpy")}
        names["jax"].config.update("jax_enable_x64", True)
    elif peer == "torch":
        torch = importlib.import_module("torch")
        names |= {"torch": torch, "T": torch.tensor(X)}
    return names


def gradient_by(peer: str, names: dict[str, Any], f: Callable[[Any], Any], x: Any) -> Any:
    """The gradient of a function of one array, as a plain array."""
    if peer == "compgraph":
        return names["ad"].grad(f)(x)
    if peer == "autograd":
        return names["autograd"].grad(f)(x)
    if peer == "jax":
        return np.asarray(names["jax"].grad(f)(names["jnp"].asarray(x)))
    if peer == "mygrad":
        tensor = names["mg"].tensor(x)
        f(tensor).backward()
        return tensor.grad
    tensor = names["torch"].tensor(x, requires_grad=True)
    f(tensor).backward()
    return tensor.grad.numpy()


def agreement(result: Any, expected: Any, close: float = 1e-5) -> str:
    """Return "yes" if numbers agree, otherwise the wrong outcome."""
    result = np.asarray(result.detach() if hasattr(result, "detach") and not isinstance(result, np.ndarray) else result)
    same = result.shape == np.shape(expected) and np.allclose(result, expected, rtol=close, atol=close)
    return "yes" if same else "**wrong, silently**"


def format_value(value: Any) -> str:
    """Format a number, or the object in its place."""
    return f"`{value}`" if value is None else f"{complex(value):.4g}" if np.iscomplexobj(value) else f"{float(value):.4g}"


def error_of(program: Callable[[], Any]) -> str:
    """Return the error of a program, or that it raises none."""
    try:
        program()
    except Exception as error:  # whatever a peer raises is the answer
        return f"raises {type(error).__name__}"
    return "a derivative"


def differences(f: Callable[[Any], Any], x: Any) -> Any:
    """Central differences of plain NumPy."""
    steps = 1e-6 * np.eye(x.size)
    return np.array([(f(x + step) - f(x - step)) / 2e-6 for step in steps])


def program_cell(peer: str, source: str, own: bool = False) -> str:
    """The cell of a NumPy program, run unchanged or with the package's functions in place of NumPy's."""
    names = namespace(peer)
    exec(textwrap.dedent(source), names)
    expected = differences(names["f"], X)
    if own:
        names["np"] = names[{"compgraph": "np", "autograd": "anp", "mygrad": "mg", "jax": "jnp", "torch": "torch"}[peer]]

    def run() -> str:
        return agreement(gradient_by(peer, names, names["f"], X), expected)

    return outcome_of(run)


def api_cell(peer: str, source: str | None) -> str:
    """The cell of a program in the package's own API."""
    if source is None:
        return "no"
    names = namespace(peer)

    def run() -> str:
        exec(textwrap.dedent(source), names)
        return str(names["answer"])

    return outcome_of(run)


def outcome_of(run: Callable[[], str]) -> str:
    """Return the result of a run, or its error; warnings beside a wrong number are included."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            result = run()
        except Exception as error:  # whatever a peer raises is the answer
            return f"raises {type(error).__name__}"
    if "wrong" in result and caught:
        return f"wrong, warns ({caught[-1].category.__name__})"
    return result


def sign(outcome: str) -> str:
    """Return the sign of an outcome in the tables, which fit a phone."""
    kind, _, error = outcome.partition(" ")
    if kind == "raises":
        return f"✗{NUMBERS[ERRORS.index(error)]}" if error in ERRORS else f"✗ {error}"
    return {"yes": "✓", "**wrong, silently**": "**!!**"}.get(outcome, "(!)" if outcome.startswith("wrong, warns") else outcome)


def legend() -> str:
    """The meaning of the signs."""
    errors = ", ".join(f"{number}\N{NO-BREAK SPACE}{error}" for number, error in zip(NUMBERS, ERRORS, strict=True))
    return (
        "**✓** right. **(!)** wrong, with a warning. **!!** wrong, without an error or a warning. **-** not run. "
        f"**✗** raises an error: {errors}."
    )


def table(rows: dict[str, Any], cell: Callable[[str, Any], str], peers: set[str]) -> str:
    """A table in Markdown: a row for each program, a column for each peer."""
    lines = ["| | " + " | ".join(TITLES.values()) + " |", "|---" * (len(PEERS) + 1) + "|"]
    for title, programs in rows.items():
        sources = [programs.get(peer) if isinstance(programs, dict) else programs for peer in PEERS]
        cells = [sign(cell(peer, source)) if peer in peers else "-" for peer, source in zip(PEERS, sources, strict=True)]
        lines.append(f"| {title} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def tables(peers: set[str]) -> dict[str, str]:
    """All tables, by the name of their place in the page."""
    numpys = {title: source for title, source in UNCHANGED.items() if "scipy" not in title}
    return {
        "signs": legend(),
        "unchanged": table(UNCHANGED, program_cell, peers),
        "renamed": table(numpys, functools.partial(program_cell, own=True), peers),
        "leaving": table(LEAVING, program_cell, peers),
        "own": table(OWN, api_cell, peers),
    }


def main() -> None:
    """Print the tables, or write them into the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="put the tables into docs/comparison.md")
    write = parser.parse_args().write
    text = PAGE.read_text()
    for name, result in tables(available()).items():
        print(f"\n{name}\n\n{result}")
        begin, end = f"<!-- {name}: begin -->", f"<!-- {name}: end -->"
        before, after = text.split(begin)[0], text.split(end)[1]
        text = f"{before}{begin}\n{result}\n{end}{after}"
    if write:
        PAGE.write_text(text)


if __name__ == "__main__":
    main()
