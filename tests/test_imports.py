"""Data flows one way: which room may import which, and which module of a room may import which."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent

# For each room, the rooms of its package that it may import, directly or not: those before it.
COMPGRAPH = ["operations", "graph", "guards", "drawing", "inplace", "arrays", "serialization", "protocols", "executor", "nn"]
LAST_OF_COMPGRAPH = ["linalg", "fft", "emath", "debugging", "_stubs"]
AUTODIFF = ["numeric", "arguments", "rules", "batching", "grads", "forward", "reverse", "operators", "custom"]
LAST_OF_AUTODIFF = ["checks", "optimizers", "visualize"]
BESIDE = [  # rooms that do not know each other
    {"guards", "drawing"},
    {"inplace", "arrays", "serialization"},
    {"protocols", "executor"},
]
ORDER = {"compgraph": COMPGRAPH + LAST_OF_COMPGRAPH, "autodiff": AUTODIFF + LAST_OF_AUTODIFF}


def modules() -> list[Path]:
    """All modules of both packages but the two ``__init__`` ones, which gather what is public."""
    return [
        p
        for package in ("compgraph", "autodiff")
        for p in sorted((ROOT / package).rglob("*.py"))
        if p.parent.parent != ROOT or p.name != "__init__.py"
    ]


def name_of(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imported(path: Path) -> set[str]:
    """The project's modules that a module imports, as ``package.room.module``."""
    name = name_of(path).split(".")
    package = name if path.name == "__init__.py" else name[:-1]
    found = set()
    for statement in ast.walk(ast.parse(path.read_text())):
        if isinstance(statement, ast.Import):
            names = [alias.name for alias in statement.names]
        elif isinstance(statement, ast.ImportFrom):
            base = package[: len(package) - statement.level + 1] if statement.level else []
            module = ".".join([*base, *([statement.module] if statement.module else [])])
            names = [f"{module}.{alias.name}" if _is_module(f"{module}.{alias.name}") else module for alias in statement.names]
        else:
            continue
        found |= {name for name in names if name.split(".")[0] in ("compgraph", "autodiff")}
    return found


def _is_module(name: str) -> bool:
    path = ROOT / Path(*name.split("."))
    return path.is_dir() or path.with_suffix(".py").exists()


def room_of(name: str) -> str:
    return name.split(".")[1]


@pytest.mark.parametrize("path", modules(), ids=lambda p: "/".join(p.relative_to(ROOT).parts))
def test_imports_follow_the_arrows(path: Path) -> None:
    package, room = name_of(path).split(".")[:2]
    if room == "_stubs":
        return  # a program, not a part: it reads the finished package
    order = ORDER[package]
    assert room in order, f"{room} has no place among the rooms"
    last = LAST_OF_COMPGRAPH if package == "compgraph" else LAST_OF_AUTODIFF
    for other in imported(path):
        if other.split(".")[0] != package:
            assert package == "autodiff", f"compgraph knows nothing of {other}"
        elif room_of(other) != room and room not in last:
            assert order.index(room_of(other)) < order.index(room), f"{room} stands before {room_of(other)}"
            assert not any({room, room_of(other)} <= pair for pair in BESIDE), f"{room} stands beside {room_of(other)}"


@pytest.mark.parametrize("path", modules(), ids=lambda p: "/".join(p.relative_to(ROOT).parts))
def test_a_room_is_entered_by_its_door(path: Path) -> None:
    """What lies in another room is imported from the room, which lists what it shows; modules in rooms are private."""
    mine = name_of(path if path.name == "__init__.py" else path.parent)
    for other in imported(path):
        room = other if (ROOT / Path(*other.split("."))).is_dir() else other.rpartition(".")[0]
        if not f"{mine}.".startswith(f"{room}.") and not mine.startswith("compgraph.operations."):
            shown = ast.parse((ROOT / Path(*room.split(".")) / "__init__.py").read_text())
            assert other == room or _shows(shown, other), f"{other} is private to {room}"


def _shows(room: ast.Module, module: str) -> bool:
    """Whether the ``__init__`` of a room shows one of its modules as a whole: ``from . import module``."""
    shown = [s for s in room.body if isinstance(s, ast.ImportFrom) and s.level == 1 and s.module is None]
    return module.rpartition(".")[2] in [alias.name for statement in shown for alias in statement.names]


@pytest.mark.parametrize("package", ["compgraph", "autodiff"])
def test_no_module_imports_itself_by_others(package: str) -> None:
    """Modules of a room, and of all rooms, stand in an order: none is reached from itself."""
    arrows = {name_of(p): imported(p) for p in modules() if p.name != "__init__.py" and name_of(p).startswith(package)}
    done: set[str] = set()
    while len(done) < len(arrows):
        ready = {m for m, others in arrows.items() if m not in done and all(o in done or o not in arrows for o in others)}
        assert ready, f"a circle among {sorted(set(arrows) - done)}"
        done |= ready


def test_the_walk_sees_imports() -> None:
    assert "compgraph.graph" in imported(ROOT / "compgraph" / "protocols" / "ufuncs.py")
    assert "autodiff.rules" in imported(ROOT / "autodiff" / "grads" / "elementwise.py")
    assert "compgraph.graph" in imported(ROOT / "autodiff" / "reverse" / "gradient.py")
    assert "compgraph.graph.lazy" in imported(ROOT / "compgraph" / "graph" / "__init__.py")
