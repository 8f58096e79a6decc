"""The documentation: its code runs, its links resolve, and generated pages are current."""

from __future__ import annotations

import contextvars
import doctest
import re
import runpy
import textwrap
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import autodiff as ad
import autodiff.optimizers
import compgraph as cg
from tests.support.failures import Failures

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
PAGES = sorted(p for p in DOCS.rglob("*.md") if "_build" not in p.parts)
OTHERS = [
    ROOT / name
    for name in (
        "README.md",
        "CONTRIBUTING.md",
        "CHANGELOG.md",
        "SECURITY.md",
        "CODE_OF_CONDUCT.md",
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


@cache
def program(name: str) -> dict[str, Any]:
    """The names of a program that writes documentation."""
    return runpy.run_path(str(DOCS / name))


def special(name: str) -> Any:
    """A name from the program that writes the page of special points."""
    return program("make_special_points.py")[name]


def label(path: Path) -> str:
    return str(path.relative_to(ROOT))


def blocks(path: Path) -> list[str]:
    """The Python code on a page."""
    return [textwrap.dedent(body) for _, word, body in FENCED.findall(path.read_text()) if word == "python"]


def run(code: list[str], filename: str) -> None:
    """Run blocks sequentially, with shared names; compare the output of interactive sessions."""
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


RUN = [path for path in [*PAGES, *ASIDE] if path.parent.name != "elsewhere" and blocks(path)]


@pytest.mark.parametrize("path", RUN, ids=label)
def test_docs_code_blocks_run(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Except those of the pages for users of other packages, which test_elsewhere runs."""
    monkeypatch.chdir(tmp_path)
    cg.reset()
    try:
        contextvars.Context().run(run, blocks(path), label(path))  # in which no value has left its graph yet
    except doctest.DocTestFailure as failure:
        pytest.fail(f"{failure.example.source}printed\n{failure.got}instead of\n{failure.example.want}")
    except doctest.UnexpectedException as failure:
        raise failure.exc_info[1] from None  # type: ignore[misc]


def test_docs_block_runner_raises_on_failures() -> None:
    with pytest.raises(doctest.DocTestFailure):
        run([">>> 1 + 1\n3\n"], "wrong")
    with pytest.raises(NameError):
        run(["unknown\n"], "wrong")
    run(["a = 1\n", ">>> a\n1\n>>> b = 2\n", "assert a + b == 3\n"], "right")


def test_docs_blocks_are_all_recognized() -> None:
    with Failures("blocks") as failures:
        for path in PAGES:
            with failures.case(label(path)):
                text = path.read_text()
                fences = FENCED.findall(text)
                assert len(re.findall(r"^[ ]*```", text, re.MULTILINE)) == 2 * len(fences)
                assert {word for _, word, _ in fences} <= FENCES


@cache
def anchors(path: Path) -> set[str]:
    """The anchors of a page's headings."""
    headings = re.findall(r"^#+ (.*)$", FENCED.sub("", path.read_text()), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_docs_links_have_targets() -> None:
    with Failures("links") as failures:
        for path in [*PAGES, *OTHERS]:
            for link in LINK.findall(FENCED.sub("", path.read_text())):
                if link.startswith(("http:", "https:")):
                    continue
                with failures.case(f"{label(path)}: {link}"):
                    place, _, anchor = link.partition("#")
                    target = (path.parent / place).resolve() if place else path
                    assert target.exists()
                    assert target.is_relative_to(ROOT)
                    assert not anchor or anchor in anchors(target)


def test_docs_reference_has_every_public_name() -> None:
    snippets = [block for path in (DOCS / "reference").glob("*.md") for _, _, block in FENCED.findall(path.read_text())]
    with Failures("reference") as failures:
        for module in (cg, ad, autodiff.optimizers):
            listed: list[str] = []
            for block in snippets:
                if f".. currentmodule:: {module.__name__}\n" in block:
                    listed += re.findall(r"^(?:   |\.\. py:data:: )(\w+)$", block, re.MULTILINE)
            with failures.case(module.__name__):
                assert len(listed) == len(set(listed))
                assert {*module.__all__} - {*listed} == set()
                assert [name for name in listed if not hasattr(module, name)] == []


# ---------------------------------------------------------------------------------------- special points

KINKS = ["Corners", "Norms and spreads at zero", "Steps"]
UNDEFINED = ["np.sqrt(x * x)", "np.arctan2(x, 0.0)", "np.angle(x + 0j)"]  # there IEEE's nan is the answer


def test_special_points_page_is_current() -> None:
    assert (DOCS / "special_points.md").read_text() == special("page")(), "run python docs/make_special_points.py"


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_special_points_match_in_forward_mode() -> None:
    with Failures("special points") as failures:
        for points in special("POINTS").values():
            for code, place in points:
                with failures.case(f"{code} at {place}"):
                    slopes, _ = special("derivative")(code, place)
                    point = np.asarray(place, float)
                    for direction in np.eye(point.size).reshape(point.size, *point.shape):
                        _, tangent = ad.jvp(special("function")(code), (point,), (direction,))
                        chosen = np.sum(slopes[direction == 1])
                        assert np.isclose(float(tangent), float(chosen), equal_nan=True)


def test_special_points_slope_lies_between_one_sided_slopes() -> None:
    with Failures("kinks") as failures:
        for kind in KINKS:
            for code, point in special("POINTS")[kind]:
                if code not in UNDEFINED:
                    with failures.case(f"{code} at {point}"):
                        check_slope_at_kink(code, point)


def check_slope_at_kink(code: str, point: Any) -> None:
    f, slopes = special("function")(code), np.ravel(special("derivative")(code, point)[0])
    point, step = np.asarray(point, float), 1e-6
    for place, unit in enumerate(np.eye(point.size).reshape(point.size, *point.shape)):
        with cg.no_graph():
            inside = [float((f(point + s * unit) - f(point)) / s) for s in (step, -step)]
        finite = [s for s in inside if abs(s) < 1e3]  # a step is as good as vertical on one of its sides, or on both
        if finite:
            assert min(finite) - 1e-4 <= slopes[place] <= max(finite) + 1e-4


# ---------------------------------------------------------------------------------------- drawings


def test_docs_drawings_are_current() -> None:
    pictures = program("make_pictures.py")
    with Failures("drawings") as failures:
        for name in pictures["PICTURES"]:
            with failures.case(name):
                committed = (DOCS / "pictures" / f"{name}.svg").read_text()
                words = [re.findall(r"<text[^>]*>([^<]*)<", svg) for svg in (committed, pictures["drawn"](name)._repr_svg_())]
                assert words[0], "a drawing without words"
                assert sorted(words[0]) == sorted(words[1]), "run python docs/make_pictures.py"


@pytest.mark.slow
def test_docs_recipe_pictures_are_current() -> None:
    pytest.importorskip("matplotlib")
    pictures = program("make_recipe_pictures.py")
    assert {f"{name}.md" for name in pictures["PICTURES"]} | {"index.md"} == {path.name for path in (DOCS / "recipes").iterdir()}
    with Failures("pictures of recipes") as failures:
        for name in pictures["PICTURES"]:
            with failures.case(name):
                path = DOCS / "pictures" / f"{name.replace('_', '-')}.svg"
                words = [re.findall(r"<text[^>]*>([^<]*)<", svg) for svg in (path.read_text(), pictures["draw"](name).decode())]
                assert words[0], "a picture without words"
                assert words[0] == words[1], "run python docs/make_recipe_pictures.py"
                assert f"](../pictures/{path.name})" in (DOCS / "recipes" / f"{name}.md").read_text()
