"""Conversions of nodes to Python numbers: leaks that are noticed, and errors."""

from __future__ import annotations

import array
import asyncio
import cmath
import ctypes
import itertools
import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import autodiff as ad
import compgraph as cg
from autodiff.forward import jvp
from compgraph.guards import leaks as leak_log
from tests.support.failures import Failures

pytestmark = pytest.mark.portable


def vector() -> Any:
    return cg.variable([1.5, -2.0, 3.0], "v") * 1


def leak_names(call: Callable[[], object]) -> list[str]:
    """The leaks that are noticed during a call."""
    with leak_log.collecting_leaks() as leaks:
        call()
    return [e.description for e in leaks]


# ------------------------------------------------------------------------------- assignments into plain arrays


def fill(buffer: Any, value: Any, times: int = 1) -> None:
    for _ in range(times):
        buffer[0] = value


BUFFERS: dict[str, Callable[[], Any]] = {
    **{dtype: lambda dtype=dtype: np.zeros(2, dtype) for dtype in ("f2", "f4", "f8", ">f8", "i1", "u4", "i8", "?")},
    "array": lambda: array.array("d", [0.0, 0.0]),
    "ctypes": lambda: (ctypes.c_double * 2)(),
}


def test_node_assigned_into_a_plain_buffer_raises() -> None:
    message = r"getitem .*assigned into a plain array.*test_conversions.*buffer\[0\] = value.*cg\.zeros"
    with Failures("buffers") as failures:
        for buffer, times in itertools.product(BUFFERS, [1, 1000]):
            with failures.case(f"{buffer}, {times} times"):
                target = BUFFERS[buffer]()
                fill(target, 0, times)  # so that the interpreter specializes the instruction for its operands
                with pytest.raises(TypeError, match=message):
                    fill(target, vector()[0], times)
                assert not any(target)


def augmented(plain: Any, v: Any) -> None:
    plain[0] += v[0]


def several(plain: Any, v: Any) -> None:
    plain[:2] = [v[0], v[1]]


def unpacked(plain: Any, v: Any) -> None:
    plain[0], plain[1] = v[0], 2.0


def looped(plain: Any, v: Any) -> None:
    for plain[0] in v:
        pass


@pytest.mark.parametrize("assign", [augmented, several, unpacked, looped])
def test_assignment_in_every_form_is_detected(assign: Callable[[Any, Any], None]) -> None:
    with pytest.raises(TypeError, match=r"plain array.*np\.zeros_like"):
        assign(np.zeros(3), vector())


def test_assignment_of_value_with_tangent_raises() -> None:
    b = np.zeros(2)

    def f(x: Any) -> Any:
        b[0] = x[0]
        return b

    with pytest.raises(TypeError, match="array from outside the differentiated function"):
        jvp(f, (np.ones(2),), (np.ones(2),))
    assert not b.any()


def test_assignment_of_value_without_derivative_is_allowed() -> None:
    v, plain = vector(), np.zeros(4)
    plain[0], plain[1], plain[2], plain[3] = v[0] > 0, np.floor(v[0]), cg.constant(7.0), np.argmax(v)
    assert plain.tolist() == [1.0, 1.0, 7.0, 2.0]
    assert leak_names(lambda: (bool(v[0] > 0), float(cg.constant(1.0)), int(np.argmax(v)))) == []


def test_assignment_within_no_graph_is_allowed() -> None:
    v, plain = vector(), np.zeros(3)
    with cg.no_graph():
        assert leak_names(lambda: (fill(plain, v[0]), fill(plain, cg.variable(1.5)), float(cg.variable(1.0)))) == []
    assert plain[0] == 1.5


def test_assignment_alternatives_in_message_work() -> None:
    v, plain = vector(), np.zeros(3)
    buffers = [cg.zeros(3), np.zeros_like(v), np.empty_like(v)]
    for buffer in buffers:
        buffer[0] = v[0]
        assert buffer[0].opname == "getitem"
    plain[0], plain[1] = float(v[0]), v.value[1]
    assert plain.tolist() == [1.5, -2.0, 0.0]


# -------------------------------------------------------------------------------------------------- noticed


NOTICED: dict[str, tuple[Callable[[Any], Any], list[str]]] = {
    "float": (lambda v: float(v[0]), ["float()"]),
    "int": (lambda v: int(v[0]), []),
    "complex": (lambda v: complex(v[0]), ["complex()"]),
    "bool": (lambda v: bool(v[0]), []),
    "math of a number": (lambda v: math.sin(float(v[0])), ["float()"]),
    "deciding": (lambda v: (math.isnan(v[0]), math.floor(v[0]), cmath.isfinite(v[0])), []),
    "float64": (lambda v: np.float64(v[0]), ["float()"]),
    "drawn": (lambda v: np.random.default_rng(0).normal(v[0], 0.0), ["float()"]),
    "setitem called": (lambda v: operator.setitem(np.zeros(2), 0, v[0]), ["float()"]),
    "%": (lambda v: "%.1f" % v[0], ["float()"]),  # noqa: UP031
    "item": (lambda v: v[0].item(), [".item()"]),
    "tolist": (lambda v: v.tolist(), [".tolist()"]),
    "value": (lambda v: v.value, [".value"]),
    "data": (lambda v: bytes(v.data), [".data"]),
    "printed": (lambda v: (str(v), repr(v), f"{v}", f"{v[0]:.2f}"), []),
    "compared": (lambda v: (v[0] > 1, 1.5 in v, v.shape, round(v[0]), max(v), len(v)), []),
    "variable": (lambda v: (cg.variable(v), cg.constant(v), np.array_equal(v, v), np.shape(v)), []),
}


ERRORS: dict[str, tuple[Callable[[Any], Any], str]] = {
    "math": (lambda v: math.sin(v[0]), r"math\.sin\(\) takes the numbers of the result of getitem.*Use np\.sin"),
    "cmath": (lambda v: cmath.sin(v[0]), r"cmath\.sin\(\) takes.*Use np\.sin"),
    "of a variable": (lambda v: math.exp(v), r"math\.exp\(\) takes.*Use np\.exp"),
    "several": (lambda v: math.hypot(1.0, v[0]), r"math\.hypot\(\) takes.*Use np\.hypot"),
    "in a list": (lambda v: math.fsum([1.0, v[0]]), r"math\.fsum\(\) takes.*Use np\.sum"),
    "elsewhere in SciPy": (lambda v: math.erf(v[0]), r"math\.erf\(\) takes.*Use scipy\.special\.erf"),
}


def test_math_function_at_top_level_raises() -> None:
    with Failures("functions") as failures:
        for name, (call, message) in ERRORS.items():
            with failures.case(name):
                v = cg.variable(1.5) if name == "of a variable" else vector()
                with pytest.raises(cg.LeakError, match=rf"{message}.*x\.value or cg\.stop_gradient\(x\)") as caught:
                    call(v)
                assert "test_conversions.py" in str(caught.value)
                assert isinstance(call(cg.constant(v.value)), (float, complex))
                with cg.no_graph():
                    assert isinstance(call(v), (float, complex))


@pytest.mark.parametrize("name", NOTICED)
def test_conversion_is_logged(name: str) -> None:
    call, expected = NOTICED[name]
    v = vector()
    assert leak_names(lambda: call(v)) == expected


def outcome(convert: Any, value: Any) -> tuple[type, str]:
    """The type and text of a conversion's result, or of its error."""
    try:
        result = convert(value)
    except Exception as error:
        result = error
    return type(result), str(result)


def test_conversion_has_numpys_value_or_error() -> None:
    values = [1.5, 1 + 2j, [1.0], [1.0, 2.0], [], np.float32(2.5), 3]
    with Failures("conversions") as failures:
        for convert, value in itertools.product([float, int, complex, bool, operator.index], values):
            with failures.case(f"{convert.__name__} of {value!r}"):
                for node in (cg.variable(value), cg.constant(value)):
                    assert outcome(convert, node) == outcome(convert, node.value)


def test_conversion_log_has_user_line() -> None:
    with leak_log.collecting_leaks() as leaks:
        float(vector()[0])
    assert str(leaks[0]).startswith("float() at File")
    assert "float(vector()[0])" in str(leaks[0])
    assert leak_log.format_leaks(leaks) == f" Values left the graph here: {leaks[0]}"


def test_conversion_log_is_bounded_and_nests() -> None:
    v = vector()
    with leak_log.collecting_leaks() as outer:
        with leak_log.collecting_leaks() as inner:
            for _ in range(1000):
                float(v[0])
        float(v[1])
    assert len(inner) == leak_log.MAX_LEAKS == len(outer)
    assert leak_log.recent_leaks()[-1] == outer[-1] != inner[-1]


def test_conversion_log_is_per_task() -> None:
    v = vector()

    async def converts(times: int) -> int:
        with leak_log.collecting_leaks() as leaks:
            for _ in range(times):
                float(v[0])
                await asyncio.sleep(0)
        return len(leaks)

    async def main() -> list[int]:
        return await asyncio.gather(converts(3), converts(5))

    assert asyncio.run(main()) == [3, 5]


# ----------------------------------------------------------------------------- writes that NumPy asks us about

WRITES = """plain += v|plain -= v|plain *= v|plain /= v|plain //= v|plain %= v|plain **= v|square @= m
np.add(v, 1, out=plain)|np.add(v, 1, plain)|np.add(plain, 1, out=plain, where=v > 1)|np.modf(v, plain, plain.copy())
np.add.reduce(m, out=plain)|np.add.accumulate(v, out=plain)|np.multiply.reduceat(v, [0, 1, 2], out=plain)
np.multiply.outer(v, v, out=square)|np.copyto(plain, v)|np.copyto(plain, 1.0, where=v > 1)
np.put(plain, [0], v)|np.place(plain, [True, False, True], v)|np.putmask(plain, [True, False, True], v)
np.add.at(plain, [0, 0], v[:2])|np.put_along_axis(plain, np.array([0, 1, 2]), v, 0)
np.sum(m, axis=0, out=plain)|m.mean(axis=0, out=plain)|np.dot(m, v, plain)|np.take(v, [0, 1, 2], out=plain)
np.clip(v, 0, 1, out=plain)|np.einsum("ij->i", m, out=plain)|np.concatenate([v[:1], v[1:]], out=plain)
np.cumsum(v, out=plain)|np.choose([0, 0, 0], [v], out=plain)|np.compress([True] * 3, v, out=plain)
np.median(m, axis=0, out=plain)|np.nansum(m, axis=0, out=plain)|np.round(v, out=plain)|np.outer(v, v, square)"""


def test_node_written_into_a_plain_array_raises() -> None:
    with Failures("writes") as failures:
        for code in WRITES.replace("\n", "|").strip("|").split("|"):
            with failures.case(code):
                v = vector()
                around = {"np": np, "v": v, "m": np.outer(v, v), "plain": np.ones(3), "square": np.ones((3, 3))}
                with pytest.raises(TypeError, match=r"graph.*(np\.zeros_like\(node\), cg\.zeros|use result = )") as caught:
                    exec(code, around)
                assert "compgraph" not in str(caught.value)
                assert around["plain"].tolist() == [1, 1, 1]
                assert np.all(around["square"] == 1)


@pytest.mark.parametrize("call", [np.copyto, lambda a, v: np.put(a, [0, 1, 2], v), lambda a, v: np.add.at(a, [0, 0, 1], v),
    lambda a, v: np.putmask(a, [True] * 3, v), lambda a, v: np.place(a, [True] * 3, v),
    lambda a, v: np.put_along_axis(a, np.array([0, 1, 2]), v, 0)])  # fmt: skip
def test_plain_array_written_within_no_graph(call: Any) -> None:
    v = vector()
    plain, expected = np.zeros(3), np.zeros(3)
    call(expected, v.value)
    with cg.no_graph():
        call(plain, v)
    assert np.array_equal(plain, expected)
    assert type(plain) is np.ndarray


def test_item_at_tuple_index_is_recorded() -> None:
    x = np.arange(6.0).reshape(2, 3)
    np.testing.assert_array_equal(ad.grad(lambda x: x.item((1, 2)) ** 2 + x.item(0, 1))(x), [[0, 1, 0], [0, 0, 10]])


# ----------------------------------------------------------------------------------------------- code without source


def run_without_source(code: str, **names: Any) -> Any:
    around = {"math": math, "array": array, "np": np, "attrgetter": operator.attrgetter, **names}
    exec(code, around)
    return around.get("y")


def test_conversion_in_code_without_source_warns_within_operator() -> None:
    with pytest.warns(RuntimeWarning, match=r"float\(\).*has no derivative"):
        assert ad.grad(lambda x: run_without_source("y = x * float(x)", x=x))(3.0) == 3.0


@pytest.mark.parametrize("code", ["array.array('d').append(x)", "a = np.zeros(2)\na.fill(x)", "next(map(math.ldexp, [x], [1]))"])
def test_conversion_unnamed_in_code_without_source_raises(code: str) -> None:
    with pytest.raises(cg.LeakError):
        run_without_source(code, x=cg.variable(3.0) * 1)


def test_attribute_error_handler_gets_no_value_of_tracer() -> None:
    def probing(x: Any) -> Any:
        try:
            number = x.value
        except AttributeError:
            number = x
        return number * number

    assert ad.grad(probing)(3.0) == 6.0
    code = "try:\n    y = x.value * x\nexcept AttributeError:\n    y = x * x"
    assert ad.grad(lambda x: run_without_source(code, x=x))(3.0) == 6.0
    assert ad.grad(lambda x: run_without_source("y = x * (x.value if hasattr(x, 'value') else x)", x=x))(3.0) == 6.0
    assert ad.grad(lambda x: x.value * x)(3.0) == 3.0


def test_string_of_batched_value_without_source_raises() -> None:
    with pytest.raises(TypeError, match="vmap"):
        ad.vmap(lambda x: run_without_source("y = x * len(str(x))", x=x))(np.ones(2))
