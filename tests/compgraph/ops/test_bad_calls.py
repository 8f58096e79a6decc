"""Bad calls of every public name raise an error about the call, never about internals of this package."""

from __future__ import annotations

import inspect
import json
import re
import traceback
import warnings
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import autodiff as ad
import autodiff.optimizers as optimizers
import compgraph as cg
from compgraph import ops
from tests.support.failures import Failures

PUBLIC_NAMES: dict[str, list[str]] = json.loads((Path(__file__).parents[2] / "public_names.json").read_text())
PACKAGES = tuple(str(Path(package.__file__ or "").parent) for package in (cg, ad))
# Errors that a bad call must not raise in a line of this package. NumPy's AxisError is also a ValueError.
OUR_OWN = (
    AttributeError, KeyError, IndexError, RecursionError, UnboundLocalError, AssertionError, NameError, ZeroDivisionError,
    StopIteration, NotImplementedError, SystemError, np.linalg.LinAlgError,
)  # fmt: skip
EXEMPT = {"cg.patched_numpy", "cg.reset", "cg.record_lines"}  # they change the whole process


def public() -> Iterator[tuple[str, Callable[..., Any]]]:
    """All public names that can be called, but kinds of error and what changes the process."""
    modules = {"cg": cg, "ad": ad, "ad.reverse": ad.reverse, "ad.forward": ad.forward, "ad.optimizers": optimizers}
    for prefix, module in modules.items():
        for name in module.__all__:
            if prefix in ("ad.reverse", "ad.forward") and name not in PUBLIC_NAMES[module.__name__]:
                continue  # used by other packages
            attribute = getattr(module, name)
            is_error = isinstance(attribute, type) and issubclass(attribute, Exception)
            if callable(attribute) and not inspect.ismodule(attribute) and not is_error and f"{prefix}.{name}" not in EXEMPT:
                yield f"{prefix}.{name}", attribute
    for name in ("check_grads", "check_graph"):
        yield f"ad.checks.{name}", getattr(ad.checks, name)
    for module in (cg.linalg, cg.fft, cg.emath):
        for name in dir(module):
            attribute = getattr(module, name)
            if callable(attribute) and not name.startswith("_") and not isinstance(attribute, type):
                yield f"{module.__name__}.{name}", attribute
    for name in ("sin", "add", "sum", "matmul", "concatenate", "where", "einsum", "sort", "interp", "clip", "mul", "dot"):
        if hasattr(cg, name):
            yield f"cg.{name}", getattr(cg, name)


NAMES = dict(public())


def pool(rng: np.random.Generator) -> list[Any]:
    """Wrong values for an argument; created anew each time, because calls may change them."""
    x = cg.variable(rng.normal(size=3))
    return [
        None, True, 0, -1, 3, 2.5, 1j, np.nan, "x", "", b"x", [], (), {}, [1, 2], (1.0, 2.0), [[1.0, 2.0], [3.0]], {"a": 1.0},
        {"a": None}, set(), object(), int, float, np.float64, repr, len, np.sin, np.add, np.sum, np.linalg.qr,
        lambda: 1.0, lambda x: x, lambda x: np.sum(x), lambda x: None, lambda x: "x", lambda x, y: x, lambda *a, **k: a,
        lambda x: x**2, lambda x: [x, x], lambda x: {"a": x}, lambda x: 1.0, lambda x: np.linalg.qr(np.ones((2, 2)) * x[0])[1],
        lambda x: np.linalg.inv(x), lambda x: np.asarray([1, 2]),
        np.zeros(0), np.zeros((0, 3)), np.zeros((2, 0)), np.arange(3), np.ones((2, 3)), np.ones((2, 2)), np.ones((2, 2, 2)),
        np.array(1.0), np.array([1, "a"], object), np.array(["a"]), np.array([True, False]), np.array([1 + 2j]),
        np.datetime64("2020-01-01"), np.float32(1.0), np.int64(2), slice(None), Ellipsis, range(3), iter([1.0]),
        np.ma.array([1.0]),
        x, x * 2, np.sum(x), x[:0], x > 0, cg.constant(2.0), cg.placeholder((2,)), cg.variable(np.ones((2, 2))), [x, x], {"a": x},
        [None], [x, None], ["x"], np.dtype(float), np.float64(np.inf), 10**20, -(10**20), "float64", "C", np.inf,
    ]  # fmt: skip


KEYWORDS = [
    "axis", "argnums", "has_aux", "sparse", "wrt", "adjoint", "name", "names", "dtype", "shape", "mode", "order", "create_graph",
    "unused", "verify", "stride", "padding", "rtol", "atol", "keepdims", "nonsense", "learning_rate", "derivative", "tol",
]  # fmt: skip


def parameters(function: Any) -> list[str]:
    try:
        return [
            p.name for p in inspect.signature(function).parameters.values() if p.kind in (p.KEYWORD_ONLY, p.POSITIONAL_OR_KEYWORD)
        ]
    except (TypeError, ValueError):
        return []


def blame_line(error: BaseException, by_numpy: bool) -> str | None:
    """The line of ours that an error of the wrong kind arose in, or went out of without words; None if all is well."""
    if isinstance(error, (cg.LeakError, cg.GuardError, ad.DetachedGradientError, cg.NonFiniteError, np.exceptions.AxisError)):
        return None
    if not isinstance(error, OUR_OWN):
        return None
    frames = traceback.extract_tb(error.__traceback__)
    last = frames[-1]
    if "numpy" in last.filename and by_numpy:
        return None  # the same call of NumPy's function raises the same
    ours = [frame for frame in frames if frame.filename.startswith(PACKAGES)]
    if isinstance(error, np.linalg.LinAlgError):
        return None if getattr(error, "__notes__", None) or not ours or "grads" not in ours[-1].filename else f"{ours[-1]}"
    if not last.filename.startswith(PACKAGES) and "<" not in last.filename and "numpy" not in last.filename:
        return None  # raised in a function passed as an argument
    missing = re.fullmatch(r"'\w+' object has no attribute '(\w+)'", str(error))
    if missing and isinstance(getattr(np, missing[1], None), np.ufunc):
        return None  # a ufunc of NumPy asks objects for methods
    if "by_numpy(" in (last.line or "") or (isinstance(error, IndexError) and "self.raw_value[" in (last.line or "")):
        return None  # NumPy's own words
    if last.line and last.line.lstrip().startswith("raise "):
        return None  # raised on purpose, with a message
    return f"{last.filename}:{last.lineno}: {last.line}"


def plausible(parameter: str, values: list[Any]) -> list[Any]:
    """The values that are plausible for a parameter of this name."""
    if parameter in ("f", "fun", "function", "g", "step", "functions"):
        return [v for v in values if callable(v) and not isinstance(v, type)]
    if parameter in (
        "x",
        "xs",
        "args",
        "primals",
        "params",
        "a",
        "node",
        "nodes",
        "v",
        "tangents",
        "x0",
        "inputs",
        "wrt",
        "logits",
    ):
        return [v for v in values if isinstance(v, (np.ndarray, float, list, dict))]
    return values


def methods(instance: Any) -> list[Any]:
    """The public methods that a class of this package defines for an object, and the object if it is callable."""
    kind = type(instance)
    if not kind.__module__.startswith(("autodiff", "compgraph")):
        return [instance] if callable(instance) else []
    named = {n for k in kind.__mro__ if k.__module__.startswith(("autodiff", "compgraph")) for n in vars(k)}
    public = [getattr(instance, n, None) for n in sorted(named) if not n.startswith("_") and n not in HARMFUL]
    return [m for m in public if callable(m)] + ([instance] if callable(instance) else [])


# What writes files or opens windows, and what the graph calls while it is debugged.
HARMFUL = {"check_cotangent", "check_unchanged", "check_result", "save", "show", "open", "view", "render", "write_html",
           "setflags", "display"}  # fmt: skip


def attempt(name: str, seed: int) -> str | None:
    """Make one random call, and one of its result if that is callable; return a description of the fault."""
    rng = np.random.default_rng([seed, sum(map(ord, name))])
    function = NAMES[name]

    def pick(count: int) -> list[Any]:
        return [(values := pool(rng))[rng.integers(len(values))] for _ in range(count)]

    own = parameters(function)
    named = own + KEYWORDS
    keywords = {named[rng.integers(len(named))]: pick(1)[0] for _ in range(rng.integers(0, 2))} if rng.random() < 0.4 else {}
    arguments: Any = pick(int(rng.integers(0, 5)))
    if rng.random() < 0.7:  # nearly right
        for i, parameter in enumerate(own[: len(arguments)]):
            choices = plausible(parameter, pool(rng))
            arguments[i] = choices[rng.integers(len(choices))] if rng.random() < 0.85 else arguments[i]
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with np.errstate(all="ignore"):
                output = function(*arguments, **keywords)
                for part in output if isinstance(output, tuple) else (output,):
                    further = methods(part) if not isinstance(part, type) else []
                    if further:
                        further = further[rng.integers(len(further))]
                        arguments = (arguments, further, pick(int(rng.integers(0, 4))))
                        further(*arguments[2])
    except Exception as error:  # whatever comes
        where = blame_line(error, name.startswith(("compgraph.", "cg.")))
        return (
            where and f"{name}, seed {seed}: {type(error).__name__}: {error} in {where}; given {in_words((arguments, keywords))}"
        )
    return None


def in_words(value: Any) -> str:
    try:
        return f"{value!r:.400}"
    except Exception as error:
        return f"what cannot be shown ({error})"


def find_faults(name: str, seeds: range) -> list[str]:
    """Faults in many calls of one name, each line of this project once."""
    wrong: dict[str, str] = {}
    for seed in seeds:
        message = attempt(name, seed)
        if message:
            wrong.setdefault(message.split(" in ")[-1].split(";")[0], message)
    return list(wrong.values())


def group_by_module(names: Iterable[str]) -> dict[str, list[str]]:
    """Names by the module that they are in."""
    groups: dict[str, list[str]] = {}
    for name in sorted(names):
        groups.setdefault(name.rpartition(".")[0], []).append(name)
    return groups


@pytest.mark.parametrize("names", group_by_module(NAMES).values(), ids=group_by_module(NAMES))
def test_bad_call_raises_error_about_the_call(names: list[str]) -> None:
    with Failures("calls") as failures:
        for name in names:
            with failures.case(name):
                wrong = find_faults(name, range(24))
                assert not wrong, "\n".join(wrong)


MESSAGES: list[tuple[Callable[[], Any], str]] = [
    (lambda: cg.primitive([1, 2]), "of a function of arrays, not of a list"),
    (lambda: cg.primitive(lambda x: x, opname=3), "opname is the name of the operation"),
    (lambda: cg.primitive(Nameless()), "has no name; pass one"),
    (lambda: cg.topological_order([None]), "takes nodes, not a NoneType"),
    (lambda: cg.topological_order(cg.variable(1.0)), r"topological_order\(\[node\]\)"),
    (lambda: ad.checks.check_graph("x"), "takes the output node of a graph"),
    (lambda: ad.reverse.Gradients([1], None), "which autodiff.reverse.gradient returns"),
    (lambda: cg.linalg.multi_dot(nonsense=cg.variable(1.0)), "unknown argument nonsense="),
    (lambda: cg.linalg.cond(name="c"), "but none were"),
    (lambda: cg.visualize_at(cg.variable(1.0) * 2, "x.svg", format=3), "format is one of"),
    (lambda: np.sum(cg.variable(np.ones(2)), out=()), r"out=\(\) contains no array"),
]


class Nameless:
    """A callable without a name."""

    def __call__(self, x: Any) -> Any:
        return x


@pytest.mark.parametrize(("call", "match"), MESSAGES)
def test_bad_call_messages(call: Callable[[], Any], match: str) -> None:
    with pytest.raises(TypeError, match=match):
        call()


def test_gradient_of_number_along_axis_raises() -> None:
    """It was a ZeroDivisionError."""
    with pytest.raises(np.exceptions.AxisError, match="out of bounds"):
        np.gradient(cg.variable(2.0), axis=0)


def test_cross_entropy_label_may_be_plain_number() -> None:
    """Its derivatives were an AttributeError."""
    x = np.array([0.3, -1.0, 2.0])
    expected = np.exp(x) / np.sum(np.exp(x)) - np.array([0, 1, 0])
    np.testing.assert_allclose(ad.grad(lambda x: cg.softmax_cross_entropy(x, 1))(x), expected)


def test_fuzzer_detects_internal_error() -> None:
    with pytest.raises(AttributeError) as caught:
        ad.checks._check_operand(None, 0, None, 0, 0)
    assert "autodiff" in (blame_line(caught.value, False) or "")


# ----------------------------------------------------------------------- functions of nodes, with bad arguments


def recorded_functions() -> dict[str, Callable[..., Any]]:
    """Recorded functions of NumPy and this package, except cumulative ones, which crash NumPy itself with some arguments."""
    tables = (ops.SMOOTH_UFUNCS, ops.SMOOTH_FUNCTIONS, ops.PACKED_FUNCTIONS)
    functions = {f"np.{ops.opname_of(f)}": f for table in tables for f in table if callable(f)}
    functions = {name: f for name, f in functions.items() if "cum" not in name}
    ours = ("softmax", "log_softmax", "logsumexp", "softmax_cross_entropy", "sigmoid_cross_entropy", "relu", "conv", "max_pool")
    more = ("mean_pool", "cross_correlate", "expand", "stop_gradient")
    return functions | {f"cg.{name}": getattr(cg, name) for name in (*ours, *more)}


RECORDED = recorded_functions()
OPERATORS: list[Callable[[Any], Any]] = [
    ad.grad, ad.hessian, ad.jacfwd, ad.jacrev, ad.elementwise_grad, ad.laplacian,
    lambda f: lambda x: ad.jacobian(f, sparse=True)(x),
    lambda f: lambda x: ad.jvp(f, (x,), (np.ones_like(x),)),
    lambda f: lambda x: ad.hvp(f)(x, x),
]  # fmt: skip


def points(rng: np.random.Generator) -> list[Any]:
    shapes: list[tuple[int, ...]] = [(), (1,), (3,), (2, 2), (3, 3), (2, 3), (0,), (2, 0), (0, 0), (2, 2, 2)]
    return [rng.normal(size=shape) for shape in shapes] + [np.zeros((2, 2)), np.zeros(3), np.ones((2, 2)), np.full(2, np.nan)]


def differentiate(name: str, seed: int) -> str | None:
    """Differentiate a function whose other arguments are arbitrary; return a description of a faulty error, if any."""
    rng = np.random.default_rng([seed, sum(map(ord, name))])
    function = RECORDED[name]
    plain = [v for v in [*pool(rng)[:26], *points(rng)] if not callable(v)]
    x = points(rng)[rng.integers(14)]
    others = [plain[rng.integers(len(plain))] for _ in range(rng.integers(0, 3))]
    own = parameters(function)
    keywords = {own[rng.integers(len(own))]: plain[rng.integers(len(plain))]} if own and rng.random() < 0.4 else {}
    place = int(rng.integers(0, len(others) + 1)) if rng.random() < 0.3 else 0
    listed = rng.random() < 0.2
    operator = OPERATORS[rng.integers(len(OPERATORS))]

    def f(x: Any) -> Any:
        arguments = [*others[:place], [x, x] if listed else x, *others[place:]]
        output = function(*arguments, **keywords)
        first = next(part for part in output if isinstance(part, cg.Node)) if isinstance(output, (tuple, list)) else output
        return np.sum(np.real(first))

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with np.errstate(all="ignore"):
                operator(f)(x)
    except StopIteration:
        return None
    except Exception as error:
        try:
            with warnings.catch_warnings(), np.errstate(all="ignore"):
                warnings.simplefilter("ignore")
                f(x)
        except Exception as its:
            if type(its) is type(error):
                return None  # NumPy raises the same for plain arrays
        where = blame_line(error, True)
        return where and (
            f"{name}, seed {seed}: {type(error).__name__}: {error} in {where}; "
            f"given {in_words((x, others, keywords, place, listed, operator))}"
        )
    return None


@pytest.mark.parametrize("names", group_by_module(RECORDED).values(), ids=group_by_module(RECORDED))
def test_derivative_of_bad_call_raises_error_about_the_call(names: list[str]) -> None:
    with Failures("derivatives of calls") as failures:
        for name in names:
            with failures.case(name):
                wrong = [message for seed in range(12) if (message := differentiate(name, seed))]
                assert not wrong, "\n".join(wrong)


def test_pad_width_node_raises() -> None:
    for operator in (ad.grad, ad.hessian):
        with pytest.raises(TypeError, match="pad_width= must contain integers"):
            operator(lambda x: np.sum(np.pad(np.ones(3), x)))(np.zeros((2, 2)))
