"""The mutation check: generated mutants, and their detection by tests."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.mutation import Tree, sampled
from tests.support.failures import Failures
from tests.support.mutants import sites_of

# A line of a module, and its mutants.
MUTANTS = {
    "f = lambda g, x: -g / x": [
        "sign '-g' -> 'g'", "sign '-g / x' -> '-(-g / x)'", "operator '-g / x' -> '-g * x'",
        "operands swapped '-g / x' -> 'x / -g'",
        "factor dropped '-g / x' -> '-g'",
    ],
    "f = lambda x: 0.5 + 2 * x**2": [
        "factor '0.5' -> '0.25'", "factor '2' -> '4'", "factor dropped '2 * x ** 2' -> 'x ** 2'", "exponent '2' -> '3'",
        "operator '2 * x ** 2' -> '2 / x ** 2'", "sign '2 * x ** 2' -> '-(2 * x ** 2)'",
        "operands swapped 'x ** 2' -> '2 ** x'", "operator '0.5 + 2 * x ** 2' -> '0.5 - 2 * x ** 2'",
        "term dropped '0.5 + 2 * x ** 2' -> '0.5'", "term dropped '0.5 + 2 * x ** 2' -> '2 * x ** 2'",
    ],
    "f = lambda x: np.sum(np.conj(x), axis=-1)": ["conjugate dropped 'np.conj(x)' -> 'x'", "axis '-1' -> '0'"],
    "f = lambda x, axis: np.maximum(x, axis=axis)": ["function 'np.maximum' -> 'np.minimum'", "axis 'axis' -> '0'"],
    "f_grad = rule(lambda x: x[1:], lambda x: x)": [
        "formula of another operand 'lambda x: x[1:]' -> 'lambda x: x'", "index '1' -> '2'",
    ],
    "def f(x):\n if x and y: return g": [
        "condition negated 'x and y' -> 'not (x and y)'", "guard removed 'x and y' -> 'False'", "and/or 'x and y' -> 'x or y'",
        "clause dropped 'x and y' -> 'x'", "clause dropped 'x and y' -> 'y'",
    ],
    "def f(x):\n check(x < 1)\n for k in range(x): pass": [
        "statement dropped 'check(x < 1)' -> 'None'", "comparison 'x < 1' -> 'x >= 1'", "range 'x' -> 'x + 1'",
    ],
    "y = code.binary('fadd', a, code.select(c, a, b))": [
        "instruction ''fadd'' -> ''fsub''", "operands swapped 'code.select(c, a, b)' -> 'code.select(c, b, a)'",
    ],
    "f = lambda x, n: (-1) ** n * x": [  # division by a sign is the same
        "sign '(-1) ** n * x' -> '-((-1) ** n * x)'", "factor dropped '(-1) ** n * x' -> '(-1) ** n'",
        "operands swapped '(-1) ** n' -> 'n ** (-1)'",
    ],
    "f = lambda x: 0 * x": [],
    # Texts, error messages, annotations, defaults, representations, limits of costs.
    "def f(x: a - b = 1 - n):\n '''1 - 2'''\n raise ValueError(-x)": [],
    "def __repr__(x): return -x": [],
    "f = rule(g).with_formula(a - b)": [],
    "f = g(f'{a - b}') if n > HEAVY else h('a' + b)": [],
    "if TYPE_CHECKING: x = -y": [],
}  # fmt: skip


def test_mutants_of_each_line_are_complete() -> None:
    with Failures("mutants") as failures:
        for line, expected in MUTANTS.items():
            with failures.case(line):
                mutants = [str(site).partition(" ")[2] for site in sites_of("guards", "m.py", line)]
                assert sorted(mutants) == sorted(expected)


def test_mutant_replaces_only_its_expression() -> None:
    text = "é = 1\n\n\ndef f(x):\n    return 'é', 2 * (x -\n              y)\n"
    (site,) = (site for site in sites_of("guards", "m.py", text) if site.kind == "operands swapped")
    assert site.applied_to(text) == "é = 1\n\n\ndef f(x):\n    return 'é', 2 * ((y - x))\n"
    assert site.function == (4, 6)
    assert str(site) == "m.py:5:22 operands swapped 'x - y' -> 'y - x'"


def test_mutant_sample_is_balanced_and_repeatable() -> None:
    sites = {family: sites_of(family, f"{family}.py", "\n".join(["f = -x * y"] * 20)) for family in ("rules", "guards")}
    sample = sampled(sites, 20, seed=5)
    assert sample == sampled(sites, 20, seed=5) != sampled(sites, 20, seed=6)
    assert [site.family for site in sample].count("rules") == 10
    assert len({(site.path, site.start) for site in sample}) == 20


@pytest.fixture
def _few_plugins(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let test processes start faster."""
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    monkeypatch.setenv("PYTEST_ADDOPTS", "-p xdist")


@pytest.mark.usefixtures("_few_plugins")
def test_mutant_is_detected_by_dependent_test(tmp_path: Path) -> None:
    text = "def double(x):\n    return 2 * x + abs(-x) - abs(x)\n"
    tests = "import m\ndef test_bad(): assert m.double(1) == 0\ndef test_good(): assert m.double(3) == 6\n"
    (tmp_path / "m.py").write_text(text)
    (tmp_path / "test_m.py").write_text(tests)
    tree = Tree(tmp_path)

    def noticed(kind: str, before: str) -> str:
        (site,) = (s for s in sites_of("guards", "m.py", text) if (s.kind, s.before) == (kind, before))
        return tree.noticing(site, ["test_m.py::test_bad", "test_m.py::test_good"], {})

    assert noticed("operator", "2 * x") == "test_m.py::test_good"  # test_bad fails without the mutation as well
    assert noticed("sign", "-x") == ""
    assert (tmp_path / "m.py").read_text() == text


@pytest.mark.usefixtures("_few_plugins")
def test_mutant_that_never_ends_is_detected(tmp_path: Path) -> None:
    (tmp_path / "m.py").write_text("n = 1 - 1\n")
    (tmp_path / "test_m.py").write_text("import m, time\ndef test():\n    while m.n: time.sleep(0.01)\n")
    tree = Tree(tmp_path)
    tree.write("m.py", "n = 1\n")
    passed, outcome = tree.run(["test_m.py"], 2)
    assert (passed, outcome["failed"]) == (False, ["time limit"])


def test_mutants_of_conditions_are_in_guards_only() -> None:
    text = "def f(x):\n if x and y: return g"
    assert sites_of("guards", "m.py", text) != []
    assert sites_of("rules", "m.py", text) == []
