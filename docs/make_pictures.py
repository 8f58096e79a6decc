"""Write the pictures in ``docs/pictures``. Run ``python docs/make_pictures.py`` after a change of the visualizer."""

from __future__ import annotations

import ast
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import compgraph as cg
from autodiff.reverse import gradient
from autodiff.visualize import Animation, animate

ROOT = Path(__file__).resolve().parent.parent
FOLDER = Path(__file__).with_name("pictures")
HEAD = """digraph {
rankdir=TB; nodesep=0.25; ranksep=0.35; margin=0.05
node [fontname="Helvetica,Arial,sans-serif" fontsize=12 shape=box style="filled,rounded" fillcolor="#e8e4f3" penwidth=0]
edge [fontname="Helvetica,Arial,sans-serif" fontsize=10 arrowsize=0.7 color=gray40]
"""


def expression() -> cg.GraphPicture:
    """The example of the README and the tutorial."""
    x, y, z = cg.variable(0.5, "x"), cg.variable(4, "y"), cg.variable(-2.3, "z")
    return cg.visualize_at(np.sin(x ** (y + z)) - 3 * np.log((x**2) * (y**3)))


def loss() -> cg.GraphPicture:
    """The graph in the page about pictures."""
    x, w = cg.variable([1.0, 2.0], "x"), cg.variable([[1.0, 0.0], [0.5, 2.0]], "W_1")
    result = cg.sum(np.tanh(w @ x), name="loss")
    return cg.visualize_at(result, values=True, shapes=True, adjoints=gradient(result))


def scopes() -> cg.GraphPicture:
    """Boxes, in the page about pictures."""
    h = cg.variable(np.ones((4, 3)), "X")
    for i in range(1, 4):
        with cg.scope(f"layer{i}"):
            h = np.tanh(h @ cg.variable(np.eye(3), f"W_{i}"))
    return cg.visualize_at(h, scopes=["layer1", "layer2"])


def compiled() -> cg.GraphPicture:
    """A loop of a compiled function, in the page about pictures."""

    def filtered(x: Any, w: Any) -> Any:
        y = x.copy()
        for i in range(1, len(y)):
            y[i] += w * np.tanh(y[i - 1])
        return np.sum(y * y)

    return cg.visualize_at(cg.jit(filtered, cache=False).compile(np.linspace(0.0, 1.0, 500), np.array(0.9)))


def product() -> cg.GraphPicture:
    """The graph of the step-by-step sweep, in the page on how it works."""
    x, y = cg.variable(3.0, "x"), cg.variable(2.0, "y")
    a = cg.multiply(x, y, name="a")
    b = cg.sin(x, name="b")
    f = cg.add(a, b, name="f")
    return cg.visualize_at(f, values=True, adjoints=gradient(f, wrt=[x, y, a, b]))


def written() -> cg.GraphPicture:
    """A graph with a write in place."""
    x = cg.variable([1.0, 2.0, 3.0], "x")
    y = cg.multiply(x, 10.0, name="y")
    y[1:] *= x[1:]
    return cg.visualize_at(cg.sum(y, name="s"))


def iterations() -> cg.GraphPicture:
    """A loop with writes, in the page about pictures."""
    x, w = cg.variable([1.0, 2.0, 3.0], "x"), cg.variable(0.9, "w")
    y = cg.zeros(3)
    y[0] = x[0]
    for i in range(1, 3):
        y[i] = w * y[i - 1] + x[i]
    return cg.visualize_at(cg.sum(y, name="loss"))


def flow() -> cg.GraphPicture:
    """From an expression to its derivatives."""
    lines = [
        'expression [label="expression\nnp.sin(x) * y"]',
        'protocol [label="NumPy\'s protocols\n__array_ufunc__ ..."]',
        'record [label="record\nruns NumPy itself"]',
        'result [label="node\nvalue, function, args"]',
        'sweep [label="sweep\nresult to variables"]',
        'rule [label="rule\nlooked up by opname"]',
        'cotangents [label="cotangents\nby name or variable"]',
        "expression -> protocol -> record -> result",
        'result -> sweep [label="gradient(f)"]',
        'sweep -> rule [label="cotangent, out, operands" dir=both]',
        "sweep -> cotangents",
    ]
    return cg.GraphPicture(HEAD + "\n".join(line.replace("\n", "\\n") for line in lines) + "\n}\n")


def in_place() -> cg.GraphPicture:
    """The log of a written buffer."""
    lines = [
        'root [label="root\nthe node that first had the buffer"]',
        'view [label="view\ny[1:]"]',
        'memory [label="memory\na log of writes"]',
        'write [label="write\ntick, place, old value, stored value"]',
        'stored [label="stored value\na recorded node"]',
        'view -> root [label="operands, while they share memory"]',
        "root -> memory -> write -> stored",
        'write -> view [label="place"]',
    ]
    return cg.GraphPicture(HEAD + "\n".join(line.replace("\n", "\\n") for line in lines) + "\n}\n")


def packages() -> cg.GraphPicture:
    """The packages and their imports: the arrows that do not follow from others."""
    arrows: dict[str, set[str]] = {}
    for path in [p for package in ("compgraph", "autodiff") for p in (ROOT / package).rglob("*.py")]:
        inside = path.relative_to(ROOT).with_suffix("").parts
        if _is_subpackage(inside):
            arrows.setdefault(".".join(inside[:2]), set()).update(_imported_subpackages(path, inside))
    reached: dict[str, set[str]] = {}

    def imports_below(subpackage: str) -> set[str]:
        if subpackage not in reached:
            reached[subpackage] = set().union(*(imports_below(other) | {other} for other in arrows[subpackage]))
        return reached[subpackage]

    statements = []
    for package in ("compgraph", "autodiff"):
        names = [
            f'"{subpackage}" [label="{subpackage.partition(".")[2]}"]'
            for subpackage in sorted(arrows)
            if subpackage.startswith(package)
        ]
        statements += [
            f"subgraph cluster_{package} {{",
            f'label={package} color=gray70 style=rounded fontname="Helvetica"',
            *names,
            "}",
        ]
    for subpackage in sorted(arrows):
        direct = arrows[subpackage] - set().union(*(imports_below(other) for other in arrows[subpackage]))
        statements += [f'"{subpackage}" -> "{other}"' for other in sorted(direct)]
    return cg.GraphPicture(HEAD + "\n".join(statements) + "\n}\n")


MODULES = [("compgraph", "bind"), ("compgraph", "interpreters"), ("compgraph", "graph")]


def _is_subpackage(parts: tuple[str, ...]) -> bool:
    """Whether a dotted name leads into a sub-package (not the alias of another), or one of the modules that others import."""
    is_package = (ROOT / Path(*parts[:2])).is_dir() and parts[:2] != ("compgraph", "autodiff")
    return len(parts) > 1 and (is_package or parts[:2] in MODULES)


def _imported_subpackages(path: Path, inside: tuple[str, ...]) -> set[str]:
    """Return the other sub-packages that a module imports."""
    home = inside[:-1]
    imported = set()
    for statement in ast.walk(ast.parse(path.read_text())):
        if isinstance(statement, ast.ImportFrom):
            base = home[: len(home) - statement.level + 1] if statement.level else ()
            module = (*base, *(statement.module or "").split(".")) if statement.module else base
            for name in [alias.name for alias in statement.names]:
                parts = (*module, name)
                if parts[0] in ("compgraph", "autodiff") and _is_subpackage(parts):
                    imported.add(".".join(parts[:2]))
    return imported - {".".join(inside[:2])}


PICTURES: dict[str, Callable[[], cg.GraphPicture]] = {
    drawing.__name__.replace("_", "-"): drawing
    for drawing in (expression, loss, scopes, compiled, product, written, iterations, flow, in_place, packages)
}


def gradient_animation() -> Animation:
    """The animation at the top of the README."""
    cg.reset()
    x, y = cg.variable(2.0, "x"), cg.variable(0.5, "y")
    return animate(cg.multiply(np.exp(-x * y), np.sin(x), name="f"))


def drawn(name: str) -> cg.GraphPicture:
    """Return a picture, with names as in a fresh process."""
    cg.reset()
    return PICTURES[name]()


if __name__ == "__main__":
    for name in PICTURES:
        drawn(name).save(FOLDER / f"{name}.svg")
        print(f"wrote {name}.svg")
    gradient_animation().save(FOLDER / "gradient.gif")
    print("wrote gradient.gif")
