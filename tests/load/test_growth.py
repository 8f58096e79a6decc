"""Growth of work with size: linear, or as the mathematics requires, in every pattern of use. `growth` defines the counts."""

from __future__ import annotations

import copy
import functools
import gc
import itertools
import pickle
import weakref
from collections.abc import Callable, Collection
from typing import Any

import numpy as np
import pytest

import autodiff as ad
import compgraph as cg
from autodiff import reverse
from autodiff.reverse import gradient
from autodiff.visualize import animate
from tests.support.failures import Failures
from tests.support.for_each import for_each
from tests.support.growth import growth_of, require_growth, work_of

Program = Callable[[], object]


@pytest.fixture(scope="module", autouse=True)
def _traced_once() -> None:
    """From Python 3.12 on, code allocates memory when it is traced for the first time."""
    growth_of(lambda n: USES["gradient"](lambda x: total(np.concatenate([x] * n)), points(2)), 8)


def total(y: Any) -> Any:
    return np.sum(y * y)


def points(n: int) -> Any:
    return np.linspace(0.1, 1.0, n)


# How a function of one array is used.
USES: dict[str, Callable[[Any, Any], Program]] = {
    "gradient": lambda f, x: lambda: ad.grad(f)(x),
    "jvp": lambda f, x: lambda: ad.jvp(f, (x,), (np.ones_like(x),)),
    "hvp": lambda f, x: lambda: ad.hvp(f)(x, np.ones_like(x)),
    "twice": lambda f, x: lambda: ad.grad(lambda x: np.sum(ad.grad(f)(x)))(x),
    "taylor": lambda f, x: lambda: ad.taylor(f, x, 2),
    "jacrev": lambda f, x: lambda: ad.jacrev(lambda x: np.stack([f(x)] * 5))(x),
    "masked": lambda f, x: lambda: ad.grad(lambda x: np.sum(np.where(x > 0.05, np.sqrt(x) * f(x), 0.0)))(x * (x != x[-1])),
}

# Operations of any number of operands, in two families: n times one array, and n numbers.
JOINED: dict[str, Callable[[list[Any]], Any]] = {
    "concatenate": np.concatenate,
    "concatenate, axis None": lambda xs: np.concatenate(xs, axis=None),
    "concatenate, axis 1": lambda xs: np.concatenate([x[None] for x in xs], axis=1),
    "hstack": np.hstack,
    "vstack": np.vstack,
    "dstack": np.dstack,
    "column_stack": np.column_stack,
    "stack": np.stack,
    "stack, last axis": lambda xs: np.stack(xs, axis=-1),
    "block": np.block,
    "append": lambda xs: np.append(xs[0], xs),
    "array": cg.array,
    "array of arrays": lambda xs: cg.array([[x] for x in xs]),
    "asarray": cg.asarray,
    "r_": lambda xs: cg.r_[tuple(xs)],
    "bmat": lambda xs: cg.bmat([xs]),
    "broadcast_arrays": lambda xs: np.stack(np.broadcast_arrays(*xs)),
}
# Operations with any number of results, and values used any number of times.
PATTERNS: dict[str, Callable[[Any, int], Any]] = {
    "elements": lambda x, n: sum(v * v for v in x[:n]),
    "rows": lambda x, n: sum(total(v) for v in np.reshape(x, (n, 2))),
    "elements of a matrix": lambda x, n: sum(np.reshape(x, (n, 2))[i, 0] * x[i] for i in range(n)),
    "slices": lambda x, n: sum([total(x[i : i + 2]) for i in range(n)], np.float64(0)),
    "indices": lambda x, n: sum(total(x[[i, 0]]) for i in range(n)),
    "split": lambda x, n: sum(total(v) for v in np.split(x, n)),
    "array_split": lambda x, n: sum(total(v) for v in np.array_split(x, n)),
    "unstack": lambda x, n: sum(total(v) for v in np.unstack(np.reshape(x, (n, 2)))),
    "fan-out": lambda x, n: total(sum(x[:2] for _ in range(n))),
    "a chain": lambda x, n: total(chain(x[:2], n)),
    "scopes in scopes": lambda x, n: total(in_scopes(x[:2], n)),
    "checkpoint": lambda x, n: ad.checkpoint(lambda *xs: sum(v * v for v in xs))(*x[:n]),
    "checkpoint of n results": lambda x, n: sum(ad.checkpoint(lambda x: [v * v for v in x])(list(x[:n]))),
    "custom_gradient": lambda x, n: squares(*x[:n]),
    "a running sum": lambda x, n: total(np.stack(running(x, n))),
}


def chain(x: Any, n: int) -> Any:
    for _ in range(n):
        x = np.sin(x) * 1.5
    return x


def in_scopes(x: Any, n: int) -> Any:
    for k in range(n):
        with cg.scope(f"s{k}"):
            x = np.sin(x)
    return x


def running(x: Any, n: int) -> list[Any]:
    sums = [x[0]]
    for k in range(1, n):
        sums.append(sums[-1] + x[k])
    return sums


@ad.custom_gradient
def squares(*xs: Any) -> Any:
    return sum(x * x for x in xs), lambda g: [2 * x * g for x in xs]


def variables(n: int) -> list[Any]:
    return [cg.variable(1.0 + k / n, f"v{k}") for k in range(n)]


def sum_of(xs: Any) -> Any:
    return sum(x * x for x in xs)


def tree(n: int) -> dict[str, Any]:
    return {f"k{k}": np.array([1.0 + k / n, 2.0]) for k in range(n)}


def of_tree(leaves: dict[str, Any]) -> Any:
    return sum(total(x) for x in leaves.values())


def square_elements(leaves: dict[str, Any]) -> dict[str, Any]:
    return {key: x * x for key, x in leaves.items()}


# Calls with any number of variables or leaves, each as the program of a size, and the exponent it may have.
CALLS: dict[str, tuple[Callable[[int], Program], float]] = {
    "gradient by names": (lambda n: lambda: gradient(sum_of(variables(n)), wrt=[f"v{k}" for k in range(n)]), 1),
    "gradient by nodes": (lambda n: lambda: (lambda vs: gradient(sum_of(vs), wrt=vs))(variables(n)), 1),
    "gradients looked up by names": (lambda n: lambda: look_up_gradients(variables(n)), 1),
    "unused variables": (lambda n: lambda: gradient(cg.variable(1.0) * 2.0, variables(n), unused="zero"), 1),
    "gradients as nodes": (lambda n: lambda: (lambda vs: reverse.gradients(sum_of(vs), vs))(variables(n)), 1),
    "jacobian of one number": (lambda n: lambda: (lambda vs: reverse.jacobian(sum_of(vs), vs))(variables(n)), 1),
    "several variables": (lambda n: lambda: reverse.variables(*[1.0] * n, names=[f"a{k}" for k in range(n)]), 1),
    "value_and_grad of a dict": (lambda n: lambda: ad.value_and_grad(of_tree)(tree(n)), 1),
    "grad of n arguments": (lambda n: lambda: ad.grad(lambda *xs: sum_of(xs), argnums=tuple(range(n)))(*points(n)), 1),
    "vjp of n results": (lambda n: lambda: ad.vjp(square_elements, tree(n))[1](tree(n)), 1),
    "vjp of n results, again": (lambda n: lambda: ad.grad(lambda t: of_tree(ad.vjp(square_elements, t)[1](t)[0]))(tree(n)), 1),
    "jvp of n leaves": (lambda n: lambda: ad.jvp(square_elements, (tree(n),), (tree(n),)), 1),
    "hvp of n leaves": (lambda n: lambda: ad.hvp(of_tree)(tree(n), tree(n)), 1),
    "jacrev of n leaves": (lambda n: lambda: ad.jacrev(of_tree)(tree(n)), 1),
    "linearize of n leaves": (lambda n: lambda: ad.linearize(of_tree, tree(n))[1](tree(n)), 1),
    "taylor of n leaves": (lambda n: lambda: ad.taylor(square_elements, tree(n), 2), 1),
    # forward mode passes the whole function once for each leaf
    "jacfwd of n leaves": (lambda n: lambda: ad.jacfwd(of_tree)(tree(n // 2)), 2),
    "pickle": (lambda n: lambda: pickle.loads(pickle.dumps(np.stack(variables(n)))), 1),
    "deepcopy": (lambda n: lambda: copy.deepcopy(sum_of(variables(n))), 1),
    "a picture of all": (lambda n: lambda: cg.visualize_at(sum_of(variables(n // 2)), limit=None, fold=False), 1),
    "matrix_power": (lambda n: lambda: ad.grad(lambda x: np.sum(np.linalg.matrix_power(x, n)))(np.eye(2)), 0),
}


# Of a vector of n numbers, in one call: the bytes.
VECTORS: dict[str, Callable[[Any], Any]] = {
    "cumprod": np.cumprod,
    "cumsum": np.cumsum,
    "prod": np.prod,
    "convolve": lambda x: np.convolve(x, x[:3]),
    "interp": lambda x: np.interp(x, np.linspace(0, 1, x.size), np.linspace(0, 1, x.size) ** 2),
    "interp, the values": lambda x: np.interp(points(x.size), np.linspace(0, 1, x.size), x),
    "bincount": lambda x: np.bincount(np.arange(x.size) // 2, weights=x),
    "histogram": lambda x: np.histogram(np.arange(x.size), bins=x.size, weights=x)[0],
    "sort": np.sort,
    "median": np.median,
    "diff": np.diff,
    "gradient": np.gradient,
    "take": lambda x: np.take(x, np.arange(x.size)[::-1]),
    "indices": lambda x: x[np.arange(x.size)[::-1]],
    "repeat": lambda x: np.repeat(x, 2),
    "pad": lambda x: np.pad(x, 2),
    "fft": lambda x: np.abs(np.fft.fft(x)),
    "unwrap": np.unwrap,
    "trapezoid": np.trapezoid,
    "reduceat": lambda x: np.add.reduceat(x, np.arange(0, x.size, 2)),
    "products between": lambda x: np.multiply.reduceat(x, np.arange(0, x.size, 2)),
    "the largest so far": np.maximum.accumulate,
}

# Taylor series whose cost may grow quadratically in the order, because they multiply series.
SERIES: dict[str, Callable[[Any], Any]] = {
    "exp": np.exp,
    "sin": np.sin,
    "tanh": np.tanh,
    "a root": lambda x: (1 + x) ** 0.5,
    "a power": lambda x: (1 + x) ** x,
    "sin of cos of exp": lambda x: np.sin(np.cos(np.exp(x))),
    "a program": lambda x: np.sin(x) * np.exp(x) / (1 + x * x),
    "parts": lambda x: np.sum(np.stack([np.sin(x), np.cos(x)])[:1] * x),
}


def look_up_gradients(vs: list[Any]) -> list[Any]:
    gradients = gradient(sum_of(vs))
    return [gradients[v.name] for v in vs]


def of_parts(joined: str, use: str) -> Callable[[int], Program]:
    """Return the program that takes an array of n numbers apart and joins the parts."""

    def program(n: int) -> Program:
        parts: Callable[[Any], list[Any]] = lambda x: [x[k] if joined == "stack" else x[k : k + 1] for k in range(n)]  # noqa: E731
        return USES[use](lambda x: total(JOINED[joined](parts(x))), points(n))

    return program


# Variants that the default run omits.
RARE = {
    *(
        "hvp, " + count_operands
        for count_operands in PATTERNS
        if count_operands not in ("elements", "slices", "a chain", "checkpoint", "custom_gradient")
    ),
    *("gradient, " + joined for joined in ("concatenate, axis None", "hstack", "vstack", "dstack", "bmat", "asarray")),
    *("twice, concatenate", "taylor, concatenate", "masked, concatenate"),
    *("vjp of n results, again", "linearize of n leaves"),
    *("exp", "sin", "a root", "sin of cos of exp", "a program"),
}


def for_each_name(names: Collection[str]) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Go through names: the rare ones in the exhaustive run only."""
    return for_each("name", [name for name in names if name not in RARE], rest=[name for name in names if name in RARE])


JOINING = {f"{use}, concatenate": ("concatenate", use) for use in USES}
JOINING |= {f"gradient, {joined}": (joined, "gradient") for joined in JOINED}


@for_each_name(JOINING)
def test_work_of_joining_is_linear_in_operands(name: str) -> None:
    require_growth(of_parts(*JOINING[name]), 8)


def test_work_of_joining_in_one_call_is_linear() -> None:
    """A copy of n operands for each of n operands is one step: only its bytes show, and only beside little else."""
    with Failures("one call") as failures:
        for joined in ("concatenate", "stack"):
            with failures.case(joined):
                prepared = lambda n, joined=joined: USES["gradient"](lambda x: total(JOINED[joined]([x] * n)), points(2))  # noqa: E731
                require_growth(prepared, 120, bytes_margin=0.2)


def test_work_of_moving_element_cotangents_makes_no_arrays() -> None:
    """The tangents of n elements allocate no array of n elements each."""
    require_growth(lambda n: USES["hvp"](lambda x: PATTERNS["elements"](x, n), points(n)), 60, bytes_margin=0.1)


@for_each_name([f"{use}, {pattern}" for pattern in PATTERNS for use in ("gradient", "hvp")])
def test_work_is_linear_in_results_and_uses(name: str) -> None:
    use, pattern = name.split(", ", 1)
    size = 8 if use == "gradient" else 4
    require_growth(lambda n: USES[use](lambda x: PATTERNS[pattern](x, n), points(2 * n)), size)


@for_each_name(CALLS)
def test_work_is_linear_in_variables_and_leaves(name: str) -> None:
    prepared, exponent = CALLS[name]
    require_growth(prepared, 8, exponent)


def test_memory_is_linear_in_vector_length() -> None:
    sizes = {"reduceat": 100, "products between": 12, "the largest so far": 12}  # step by step
    with Failures("vectors") as failures:
        for name, function in VECTORS.items():
            with failures.case(name):
                margin = 0.1 if name == "reduceat" else 0.2
                prepared = lambda n, f=function: USES["gradient"](lambda x: total(f(x)), points(n))  # noqa: E731
                require_growth(prepared, sizes.get(name, 2000), bytes_margin=margin)


@for_each_name(SERIES)
def test_work_of_taylor_is_quadratic_in_order(name: str) -> None:
    require_growth(lambda n: lambda: ad.taylor(SERIES[name], 0.5, n), 4, 2)


# ---------------------------------------------------------------------------------------------- the measure itself


def by_steps(n: int) -> Program:
    return lambda: [k for _ in range(n) for k in range(n)]


def within_one_step(n: int) -> Program:
    def program() -> None:
        for _ in range(n):
            np.zeros(n)

    return program


def of_copied_operands(n: int) -> Program:
    def count_operands(*operands: Any) -> int:
        return len(operands)

    return lambda: [count_operands(*range(n)) for _ in range(n)]


@pytest.mark.parametrize("program", [by_steps, within_one_step, of_copied_operands])
def test_work_of_quadratic_programs(program: Callable[[int], Program]) -> None:
    growth = growth_of(program, 40)
    assert max(growth.steps, growth.bytes) > 1.6
    with pytest.raises(AssertionError, match="grow as"):
        require_growth(program, 40, bytes_margin=0.2)


def test_require_growth_detects_quadratic_part() -> None:
    """A few steps for each pair of operands, in the midst of linear work, at the sizes of the tests here."""

    def program(n: int) -> Program:
        joining = of_parts("concatenate", "gradient")(n)

        def run() -> None:
            joining()
            for _ in range(n):
                for _ in range(n):
                    pass
                for _ in range(n):
                    pass

        return run

    with pytest.raises(AssertionError, match=r"steps grow as n\*\*1\.[1-9]"):
        require_growth(program, 8)


def test_work_of_repeated_runs_agrees() -> None:
    _, once, again = (work_of(lambda: ad.grad(lambda x: total(chain(x, 50)))(points(3))) for _ in range(3))  # code is read once
    assert abs(once.steps - again.steps) < 0.05 * once.steps
    assert abs(once.bytes - again.bytes) < 0.05 * once.bytes


# ----------------------------------------------------------------------------------------------------- pictures


def write_by_steps(n: int) -> Any:
    x, b = cg.variable([1.0, 2.0], "x"), cg.zeros(n)
    for k in range(n):
        b[k] = x[0]
    return np.sum(b)


def read_by_all(n: int) -> Any:
    nodes = [cg.variable(1.0)]
    for _ in range(n):
        nodes.append(np.sum(np.stack(nodes)))
    return nodes[-1]


def deep_in_scopes(n: int) -> Any:
    return in_scopes(cg.variable([1.0, 2.0]), n)


DRAWINGS: dict[str, Callable[[int], Any]] = {
    "writes": write_by_steps,
    "one operand, n times": lambda n: np.concatenate([cg.variable([1.0], "x")] * n),
    "n operands": lambda n: np.stack([cg.variable(1.0) * k for k in range(n)]),
    "each reads all before": read_by_all,
    "scopes in scopes": deep_in_scopes,
    "a cotangent of a scatter": lambda n: gradient(sum_of(cg.variable(points(n), "x")), create_graph=True)["x"],
}


@pytest.mark.parametrize("fold", [False, None])
def test_drawing_limit_bounds_size(fold: bool | None) -> None:
    limit = 10
    nothing = len(cg.visualize_at(cg.variable(1.0)).html())
    with Failures("drawn") as failures:
        for (name, draw), n, scopes in itertools.product(DRAWINGS.items(), (40, 160), ("open", "closed")):
            with failures.case(f"{name}, {n}, scopes {scopes}"):
                picture = cg.visualize_at(draw(n), limit=limit, fold=fold, scopes=scopes, values=True, shapes=True, lines=True)
                assert picture.source.count(" -> ") <= 8 * limit
                assert picture.source.count("subgraph") <= limit
                assert len(picture.source) < 16_000
                assert len(picture.html()) - nothing < 25_000


def test_drawing_counts_parallel_arrows() -> None:
    node = np.concatenate([cg.variable([1.0, 2.0])] * 300)
    few = cg.visualize_at(node, limit=8, fold=False).source
    assert 'label="× 300' in few
    assert few.count(" -> ") == 2  # to the label, and from it
    everything = cg.visualize_at(node, limit=None, fold=False).source
    assert "×" not in everything
    assert everything.count(" -> ") == 300
    steps = write_by_steps(100)  # each write is a step, which reads the one before
    assert cg.visualize_at(steps, limit=8, fold=False).source.count(" -> ") < 20
    assert cg.visualize_at(steps, limit=None, fold=False).source.count(" -> ") > 300
    assert "more arrows" in cg.visualize_at(read_by_all(40), limit=85, fold=False).source


def test_animation_of_too_many_uses_raises() -> None:
    with pytest.raises(ValueError, match="the graph has 301 edges"):
        animate(np.sum(np.concatenate([cg.variable([1.0])] * 300)))


# ------------------------------------------------------------------------------------------- memory that remains


def node_of_new_primitive(opname: str, factor: float) -> tuple[Any, Any]:
    """A node of a unique primitive, and a weak reference to its function."""

    @cg.primitive(opname=opname)
    def square(x: Any) -> Any:
        return factor * x * x

    ad.rule(square, lambda g, out, x: 2 * factor * x * g, tangents=[lambda t, out, x: 2 * factor * x * t])
    return square(cg.variable(3.0, "x")), weakref.ref(square.function)


@pytest.mark.parametrize("names", ["one name", "new names"])
def test_primitive_and_rule_are_freed_with_last_use(names: str) -> None:
    pairs = []
    for k in range(20):
        node, function = node_of_new_primitive("growing" if names == "one name" else f"growing_{k}", k)
        assert gradient(node)["x"] == 6 * k
        pairs.append((node, function))
    gc.collect()
    for k, (node, function) in enumerate(pairs):  # the graph alone keeps its functions alive
        assert node.opname.startswith("growing")
        assert gradient(node)["x"] == 6 * k
        assert gradient(gradient(node, create_graph=True)["x"])["x"] == 2 * k
        assert function() is not None
    functions = [function for _, function in pairs]
    del node, function, pairs
    gc.collect()
    assert [function() for function in functions] == [None] * 20
    assert cg.ops.function_by_opname("growing") is cg.ops.function_by_opname("growing_7") is None


def test_primitive_of_wrapped_function_inherits_no_rule() -> None:
    def square(x: Any) -> Any:
        return x * x

    ad.rule(cg.primitive(opname="squared_for_growth")(square), lambda g, out, x: 2 * x * g)

    @functools.wraps(square)
    def cube(x: Any) -> Any:
        return x**3

    other = cg.primitive(opname="cubed_for_growth")(cube)
    assert other(cg.variable(2.0)).opname == "cubed_for_growth"
    with pytest.raises(TypeError, match="cubed_for_growth has no derivative rule"):
        gradient(other(cg.variable(2.0)))
