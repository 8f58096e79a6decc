"""The documentation: its code runs, its links lead somewhere, and what is generated is current."""

from __future__ import annotations

import contextvars
import doctest
import re
import runpy
import textwrap
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import autodiff as ad
import autodiff.optimizers
import compgraph as cg

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
PAGES = sorted(p for p in DOCS.rglob("*.md") if "_build" not in p.parts)
OTHERS = [
    ROOT / name
    for name in (
        "README.md",
        "CONTRIBUTING.md",
        "CHANGELOG.md",
        "compgraph/inplace/IN_PLACE.md",
        "ARCHITECTURE.md",
        "benchmarks/README.md",
    )
]
FENCED = re.compile(r"^([ ]*)```([^\n]*)\n(.*?)^[ ]*```[ ]*$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\(([^)\s]+)\)")
RULES = "\n".join(path.read_text() for path in sorted((ROOT / "autodiff" / "grads").glob("*.py")))
# The word behind the backquotes: code ("py": another package's, which test_elsewhere runs), the directives of Sphinx,
# and in README and benchmarks the commands of a shell.
FENCES = {"python", "py", "{toctree}", "{eval-rst}", "{include} ../CONTRIBUTING.md", "{include} ../CHANGELOG.md"}
FENCES |= {"{include} ../compgraph/inplace/IN_PLACE.md", "{include} ../benchmarks/README.md"}
ASIDE = OTHERS[1:]  # test_readme runs that of the README

special = runpy.run_path(str(DOCS / "make_special_points.py"))
pictures = runpy.run_path(str(DOCS / "make_pictures.py"))


def label(path: Path) -> str:
    return str(path.relative_to(ROOT))


def blocks(path: Path) -> list[str]:
    """The Python code on a page."""
    return [textwrap.dedent(body) for _, word, body in FENCED.findall(path.read_text()) if word == "python"]


def run(code: list[str], filename: str) -> None:
    """Run blocks one after the other, with names in common; where they show a session, compare what is printed."""
    names: dict[str, Any] = {"__name__": "page"}
    flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    for place, block in enumerate(code):
        if f"\n{block.strip()}\n" in RULES:
            continue  # a line of the package itself, and word for word
        if ">>>" not in block:
            exec(compile(block, filename, "exec"), names)
            continue
        runner = doctest.DebugRunner(optionflags=flags)
        test = doctest.DocTestParser().get_doctest(block, names, f"{filename}, block {place}", filename, 0)
        runner.run(test, clear_globs=False)
        names = test.globs


@pytest.mark.parametrize("path", [*[p for p in PAGES if p.parent.name != "elsewhere"], *ASIDE], ids=label)
def test_its_code_runs(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """But for that of the pages for users of other packages, which test_elsewhere runs."""
    monkeypatch.chdir(tmp_path)
    cg.reset()
    try:
        contextvars.Context().run(run, blocks(path), label(path))  # in which no value has left its graph yet
    except doctest.DocTestFailure as failure:
        pytest.fail(f"{failure.example.source}printed\n{failure.got}instead of\n{failure.example.want}")
    except doctest.UnexpectedException as failure:
        raise failure.exc_info[1] from None  # type: ignore[misc]


def test_the_runner_notices_what_is_wrong() -> None:
    with pytest.raises(doctest.DocTestFailure):
        run([">>> 1 + 1\n3\n"], "wrong")
    with pytest.raises(NameError):
        run(["unknown\n"], "wrong")
    run(["a = 1\n", ">>> a\n1\n>>> b = 2\n", "assert a + b == 3\n"], "right")


@pytest.mark.parametrize("path", PAGES, ids=label)
def test_no_block_goes_unread(path: Path) -> None:
    text = path.read_text()
    found = FENCED.findall(text)
    assert len(re.findall(r"^[ ]*```", text, re.MULTILINE)) == 2 * len(found)
    assert {word for _, word, _ in found} <= FENCES


def anchors(path: Path) -> set[str]:
    """The anchors of a page's headings."""
    headings = re.findall(r"^#+ (.*)$", FENCED.sub("", path.read_text()), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("path", [*PAGES, *OTHERS], ids=label)
def test_its_links_lead_somewhere(path: Path) -> None:
    for link in LINK.findall(FENCED.sub("", path.read_text())):
        if link.startswith(("http:", "https:")):
            continue
        place, _, anchor = link.partition("#")
        target = (path.parent / place).resolve() if place else path
        assert target.exists(), link
        assert target.is_relative_to(ROOT), link
        assert not anchor or anchor in anchors(target), link


@pytest.mark.parametrize("module", [cg, ad, autodiff.optimizers], ids=lambda m: m.__name__)
def test_the_reference_has_every_public_name(module: Any) -> None:
    listed: list[str] = []
    for path in (DOCS / "reference").glob("*.md"):
        for block in FENCED.findall(path.read_text()):
            if f".. currentmodule:: {module.__name__}\n" in block[2]:
                listed += re.findall(r"^(?:   |\.\. py:data:: )(\w+)$", block[2], re.MULTILINE)
    assert len(listed) == len(set(listed))
    assert set(listed) >= set(module.__all__)
    assert all(hasattr(module, name) for name in listed)


# ---------------------------------------------------------------------------------------- special points

POINTS = [(kind, code, point) for kind, points in special["POINTS"].items() for code, point in points]


def test_special_points_are_current() -> None:
    assert (DOCS / "special_points.md").read_text() == special["page"](), "run python docs/make_special_points.py"


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize(("kind", "code", "point"), POINTS)
def test_special_points_are_the_same_forward(kind: str, code: str, point: Any) -> None:
    found, _ = special["derivative"](code, point)
    point = np.asarray(point, float)
    for direction in np.eye(point.size).reshape(point.size, *point.shape):
        _, tangent = ad.jvp(special["function"](code), (point,), (direction,))
        chosen = np.sum(found[direction == 1])
        assert np.isclose(float(tangent), float(chosen), equal_nan=True)


CORNERS = [(code, point) for kind, code, point in POINTS if kind in ("Corners", "Norms and spreads at zero", "Steps")]
UNDEFINED = ["np.sqrt(x * x)", "np.arctan2(x, 0.0)", "np.angle(x + 0j)"]  # there IEEE's nan is the answer


@pytest.mark.parametrize(("code", "point"), [(c, p) for c, p in CORNERS if c not in UNDEFINED])
def test_a_corner_has_a_slope_between_those_of_its_sides(code: str, point: Any) -> None:
    f, found = special["function"](code), np.ravel(special["derivative"](code, point)[0])
    point, step = np.asarray(point, float), 1e-6
    for place, unit in enumerate(np.eye(point.size).reshape(point.size, *point.shape)):
        with cg.no_graph():
            inside = [float((f(point + s * unit) - f(point)) / s) for s in (step, -step)]
        finite = [s for s in inside if abs(s) < 1e3]  # a step is as good as vertical on one of its sides, or on both
        if finite:
            assert min(finite) - 1e-4 <= found[place] <= max(finite) + 1e-4


# ---------------------------------------------------------------------------------------- drawings


@pytest.mark.parametrize("name", pictures["PICTURES"])
def test_drawings_are_current(name: str) -> None:
    words = [re.findall(r"<text[^>]*>([^<]*)<", svg) for svg in (_committed(name), pictures["drawn"](name)._repr_svg_())]
    assert words[0], "a drawing without words"
    assert sorted(words[0]) == sorted(words[1]), "run python docs/make_pictures.py"


def _committed(name: str) -> str:
    return (DOCS / "pictures" / f"{name}.svg").read_text()
