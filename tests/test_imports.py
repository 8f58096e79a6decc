"""Data flows one way: which module may import which."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent

# For each module, the modules of the project that it may import.
COMPGRAPH = {
    "compositions": set(),
    "policies": {"compositions"},
    "adapters": set(),
    "attached": set(),
    "operations": {"adapters", "attached", "policies"},
    "names": {"locks"},
    "contexts": {"interpreter"},
    "locks": set(),
    "modes": {"contexts"},
    "lines": set(),
    "lazy": set(),
    "interpreter": set(),
    "scopes": {"contexts", "modes"},
    "memory": {"lines"},
    "copies": {"interpreter"},
    "refusals": {"contexts", "copies", "interpreter", "lines"},
    "hollow": {"contexts", "copies", "refusals"},
    "nodes": {"contexts", "copies", "hollow", "lazy", "operations", "names", "modes", "lines", "memory", "refusals"},
    "recipes": {"locks", "memory", "nodes"},
    "decisions": {"contexts", "graph", "interpreter", "lines", "memory", "modes", "names", "nodes", "recipes"},
    "escapes": {"decisions", "hollow", "interpreter", "operations", "lines", "modes", "nodes", "refusals"},
    "leaves": {"lazy", "decisions", "modes", "names", "nodes"},
    "operands": {"lazy", "operations", "nodes"},
    "windows": set(),
    "convolutions": {"primitives", "windows"},
    "pooling": {"primitives", "windows"},
    "buffers": {"nodes", "modes"},
    "writing": {"decisions", "lazy", "lines", "operations", "nodes", "modes", "memory"},
    "overlapping": {"memory", "nodes", "operands", "operations", "writing"},
    "writers": {"overlapping", "decisions", "operations", "nodes", "modes", "memory", "operands", "writing"},
    "flat": {"decisions", "nodes", "operands", "overlapping", "writers"},
    "creation": {"decisions", "lazy", "modes", "operations", "nodes", "operands", "buffers"},
    "binding": {"decisions", "operations", "nodes", "operands", "writers"},
    "protocol": {
        "contexts",
        "decisions",
        "lines",
        "operations",
        "nodes",
        "modes",
        "operands",
        "writers",
        "binding",
        "creation",
        "escapes",
    },
    "methods": {
        "contexts",
        "decisions",
        "lines",
        "escapes",
        "operations",
        "nodes",
        "modes",
        "memory",
        "operands",
        "writing",
        "writers",
        "flat",
        "binding",
        "protocol",
    },
    "primitives": {"operations", "nodes", "operands", "protocol"},
    "linalg": {"primitives"},
    "fft": {"primitives"},
    "emath": {"primitives"},
    "finding": {"operations"},
    "copied": {"decisions", "nodes", "recipes"},
    "pickling": {"copied", "recipes", "locks", "decisions", "finding", "hollow", "lines", "memory", "nodes", "operations"},
    "patching": {"locks", "contexts", "buffers", "creation", "lines", "nodes", "operands"},
    "joining": {"nodes", "operands", "creation"},
    "functions": {"hollow", "modes", "operations", "nodes", "operands", "primitives"},
    "graph": {"operations", "memory", "nodes"},
    "pictures": {"operations", "memory", "nodes", "graph"},
    "visualizer": {"memory", "nodes", "graph", "pictures"},
    "debugging": {"hollow", "operations", "memory", "modes", "nodes", "visualizer"},
    "replay": {"contexts", "decisions", "memory", "modes", "nodes", "operations", "writing"},
    "questions": {"decisions", "nodes", "recipes", "replay"},
    "simplification": {"memory", "modes", "nodes", "operations", "replay"},
    "storage": {"memory", "nodes", "replay"},
    "fusing": {"memory", "nodes", "replay", "storage"},
    "program": {"locks", "fusing", "memory", "nodes", "operations", "replay", "storage"},
    "executor": {"contexts", "lazy", "graph", "memory", "modes", "nodes", "program", "questions", "replay", "simplification"},
}
REGISTRY = {"deferred", "broadcasting", "gone"}
AUTODIFF = {
    "broadcasting": set(),
    "deferred": set(),
    "registry": REGISTRY,
    "numeric": {"registry"},
    "grads": {"registry", "deferred", "broadcasting", "batching"},
    "gone": set(),
    "shadow": set(),
    "rewind": {"registry", "deferred", "broadcasting", "gone", "shadow"},
    "structural": {"registry", "deferred", "supports"},
    "supports": {"registry", "deferred", "broadcasting", "batching", "following"},
    "sweep": {"registry", "deferred", "broadcasting", "rewind", "structural"},
    "detached": {"numeric"},
    "asked": {"detached", "trees"},
    "reverse": {"numeric", "sweep", "broadcasting", "detached", "pulled"},
    "tangents": {"registry", "broadcasting", "shadow"},
    "along": {"asked", "tangents", "trees", "broadcasting", "sweep"},
    "carried": {"along", "following", "tangents", "registry", "broadcasting", "shadow"},
    "forward": {"along", "carried", "tangents"},
    "trees": set(),
    "trace": {"asked", "sweep", "tangents", "along", "carried", "trees"},
    "operators": {"trace", "along", "detached", "trees"},
    "slopes": {"numeric", "registry"},
    "declaring": {"numeric", "registry", "broadcasting", "slopes"},
    "opaque": {"operators", "registry"},
    "tracing": {"registry", "deferred", "sweep", "trees"},
    "custom": {"opaque", "sweep", "trees"},
    "checkpointing": {"opaque", "supports", "tracing", "tangents", "trees"},
    "fields": {"operators", "trace", "along", "recorded", "trees"},
    "series": {"registry", "broadcasting", "tangents", "along", "sweep", "rewind", "opaque", "tracing", "trees"},
    "implicit": {"jacobians", "opaque", "operators", "along", "tracing"},
    "ode": {"implicit", "opaque", "operators", "along"},
    "batching": {"registry", "deferred", "broadcasting"},
    "following": {"batching", "registry", "deferred", "broadcasting", "tangents", "rewind"},
    "batched_sweep": {"batching", "following", "registry", "deferred", "broadcasting", "sweep", "structural", "supports"},
    "limits": {"batched_sweep", "grads", "rewind", "sweep"},
    "batched_rewind": {"batching", "broadcasting", "carried", "deferred", "following", "registry", "rewind", "structural"},
    "recorded": {"batched_rewind", "batched_sweep", "trace", "tangents", "rewind", "sweep"},
    "pulled": {"carried", "detached", "recorded"},
    "coloring": set(),
    "patterns": set(),
    "sparsity": {"following", "coloring", "patterns", "recorded", "trace", "tangents", "registry", "broadcasting"},
    "jacobians": {"recorded", "sparsity", "trace", "along", "broadcasting", "sweep", "trees"},
    "hessians": {"jacobians", "recorded", "sparsity", "trace", "trees"},
}
AUTODIFF_LOW = set(AUTODIFF)
LAST = {"checks", "optimizers", "visualize"}


def modules() -> list[Path]:
    """All modules of both packages but the ``__init__`` ones, which gather what is public."""
    return [p for package in ("compgraph", "autodiff") for p in sorted((ROOT / package).rglob("*.py")) if p.name != "__init__.py"]


def imported(path: Path) -> set[str]:
    """The project's modules that a module imports, as ``package.module``."""
    package = path.relative_to(ROOT).parts[:-1]
    found = set()
    for statement in ast.walk(ast.parse(path.read_text())):
        if isinstance(statement, ast.Import):
            names = [alias.name for alias in statement.names]
        elif isinstance(statement, ast.ImportFrom):
            base = list(package[: len(package) - statement.level + 1]) if statement.level else []
            module = ".".join([*base, *([statement.module] if statement.module else [])])
            is_package = (ROOT / Path(*module.split("."))).is_dir()
            names = [f"{module}.{alias.name}" for alias in statement.names] if is_package else [module]
        else:
            continue
        found |= {".".join(name.split(".")[:2]) for name in names if name.split(".")[0] in ("compgraph", "autodiff")}
    return found


@pytest.mark.parametrize("path", modules(), ids=lambda p: "/".join(p.relative_to(ROOT).parts))
def test_imports_follow_the_arrows(path: Path) -> None:
    package, name = path.relative_to(ROOT).parts[:2]
    name = name.removesuffix(".py")
    if (package, name) == ("compgraph", "stubs"):
        return  # a program, not a part: it reads the finished package
    others = {i for i in imported(path) if i != f"{package}.{name}"}
    if package == "compgraph":
        assert name in COMPGRAPH, f"{name} has no place among the arrows"
        assert others <= {f"compgraph.{m}" for m in COMPGRAPH[name]}
    else:
        assert name in AUTODIFF_LOW | LAST, f"{name} has no place among the arrows"
        allowed = AUTODIFF.get(name, AUTODIFF_LOW)
        assert {o for o in others if o.startswith("autodiff")} <= {f"autodiff.{m}" for m in allowed}


def test_the_walk_sees_imports() -> None:
    assert "compgraph.nodes" in imported(ROOT / "compgraph" / "protocol.py")
    assert "autodiff.registry" in imported(ROOT / "autodiff" / "grads" / "elementwise.py")
    assert "compgraph.nodes" in imported(ROOT / "autodiff" / "reverse.py")
