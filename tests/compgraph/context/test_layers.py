"""Contexts apply only to the code inside them: generators, threads, tasks, and interruptions at any point."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import CodeType
from typing import Any

import numpy as np
import pluggy
import pytest

import autodiff as ad
import compgraph as cg
from autodiff.reverse import gradient, gradients
from compgraph.context import active_profiler, layers
from compgraph.context.layers import is_fast_path
from compgraph.context.settings import recording_on
from compgraph.values import is_tracer
from tests.support.interruption import Interruption

pytestmark = pytest.mark.portable

# Each context with a predicate that returns whether it is active.
X = cg.variable([1.0, 2.0])
CONTEXTS: dict[str, tuple[Callable[[], Any], Callable[[], bool]]] = {
    "no_graph": (cg.no_graph, lambda: not isinstance(X * 2, cg.OperationalNode)),
    "scope": (lambda: cg.scope("part"), lambda: "part" in (X * 2).scope),
    "strict": (cg.strict, lambda: is_tracer(cg.variable([1.0]))),
    "debug": (cg.debug, lambda: _stops_at_infinity() and is_tracer(cg.variable([1.0]))),
    "profile": (cg.profile, lambda: _is_profiled()),
    "default_dtype": (lambda: cg.default_dtype(np.float32), lambda: cg.variable([1.0]).dtype == np.float32),
    "patched_numpy": (cg.patched_numpy, lambda: isinstance(np.asarray(X), cg.Node)),
}
REUSABLE = pytest.mark.parametrize(
    ("context", "holds"),
    [(c, h) for name, (c, h) in CONTEXTS.items() if name != "default_dtype"],
    ids=[name for name in CONTEXTS if name != "default_dtype"],
)  # a call of default_dtype holds
# A profile belongs to one thread and raises in another; see tests/compgraph/profiling.
SHARED = pytest.mark.parametrize(
    ("context", "holds"),
    [(c, h) for name, (c, h) in CONTEXTS.items() if name not in ("default_dtype", "profile")],
    ids=[name for name in CONTEXTS if name not in ("default_dtype", "profile")],
)
BY_THREADS = pytest.mark.parametrize(
    ("context", "holds"), [c for n, c in CONTEXTS.items() if n != "profile"], ids=[n for n in CONTEXTS if n != "profile"]
)  # these look from another thread, too
EACH = pytest.mark.parametrize(("context", "holds"), CONTEXTS.values(), ids=CONTEXTS)


def _is_profiled() -> bool:
    """Whether the active profiler counts operations on the fast path and on the slow path."""
    profiler = active_profiler()
    if profiler is None:
        return False
    before = [entry.calls for entry in profiler.root.steps.values()]
    X * 2, np.sum(X)
    return sum(entry.calls for entry in profiler.root.steps.values()) == sum(before) + 2


def _stops_at_infinity() -> bool:
    try:
        with np.errstate(divide="ignore"):
            np.log(X * 0.0)
    except cg.NonFiniteError:
        return True
    return False


@EACH
def test_context_holds_inside_only(context: Any, holds: Any) -> None:
    assert not holds()
    with context():
        assert holds()
        with context():
            assert holds()
        assert holds()
    assert not holds()


@EACH
def test_context_of_suspended_generator_does_not_leak(context: Any, holds: Any) -> None:
    def generator() -> Iterator[bool]:
        yield holds()
        with context():
            yield holds()
            with context():
                yield holds()
            yield holds()
        yield holds()

    states = []
    for inside in generator():
        states.append(inside)
        assert not holds()
    assert states == [False, True, True, True, False]


@EACH
def test_context_of_alternating_generators(context: Any, holds: Any) -> None:
    def generator() -> Iterator[bool]:
        with context():
            yield holds()
            yield holds()

    one, other = generator(), generator()
    for step in (one, other, other, one):
        assert next(step)
        assert not holds()
    assert next(one, None) is None
    assert not holds()
    del other
    assert not holds()


@EACH
def test_context_of_generator_inside_another_context(context: Any, holds: Any) -> None:
    def generator() -> Iterator[bool]:
        with cg.scope("inner"):
            yield holds()
        yield holds()

    with context():
        for inside in generator():
            assert inside
            assert holds()
        steps = generator()
        next(steps)
    assert not next(steps)
    assert not holds()


def test_context_of_generator_is_within_that_of_caller() -> None:
    """A generator's own context is inside those of its caller, although these were entered later."""

    def generator() -> Iterator[Any]:
        with cg.no_graph():
            while True:
                yield type(X * 2)

    steps = generator()
    assert next(steps) is np.ndarray

    def f(x: Any) -> Any:
        assert next(steps) is np.ndarray
        return x * x

    assert ad.grad(f)(3.0) == 6.0
    assert next(steps) is np.ndarray
    assert isinstance(X * 2, cg.OperationalNode)


@pytest.mark.parametrize("operator", [ad.grad, lambda f: lambda x: ad.jacfwd(f)(x), lambda f: lambda x: ad.jacrev(f)(x)])
def test_context_of_generator_loop_in_derivative(operator: Any) -> None:
    def batches() -> Iterator[float]:
        for k in range(3):
            with cg.no_graph():
                yield float(k)

    def f(x: Any) -> Any:
        total = 0.0
        for k in batches():
            total = total + k * x[0] + x[1] ** 2
        return total

    assert np.allclose(operator(f)(np.array([1.0, 2.0])), [3.0, 12.0])


@EACH
def test_context_of_generator_closed_in_another_thread(context: Any, holds: Any) -> None:
    def generator() -> Iterator[None]:
        with context():
            yield

    errors: list[Any] = []

    def close() -> None:
        try:
            steps.close()
            errors.extend([] if not holds() else ["it holds in the thread"])
        except BaseException as error:
            errors.append(error)

    steps = generator()
    next(steps)
    thread = threading.Thread(target=close)
    thread.start()
    thread.join()
    assert errors == []
    assert not holds()


@EACH
def test_context_wrapped_by_user_context_managers(context: Any, holds: Any) -> None:
    """`contextlib`, and a class with an ``__enter__``, mean to hold from then on; within a generator, while it runs."""

    @contextlib.contextmanager
    def by_generator() -> Iterator[None]:
        with context():
            yield

    class ByClass:
        def __enter__(self) -> None:
            self.inner = context()
            self.inner.__enter__()

        def __exit__(self, *exception: Any) -> None:
            self.inner.__exit__(*exception)

    for own in (by_generator, ByClass):

        def generator(own: Any = own) -> Iterator[bool]:
            with own():
                yield holds()

        with own():
            assert holds()
        assert not holds()
        for inside in generator():
            assert inside
            assert not holds()
    with contextlib.ExitStack() as stack:
        stack.enter_context(context())
        assert holds()
    assert not holds()


@REUSABLE
def test_context_entered_by_hand(context: Any, holds: Any) -> None:
    one, other = context(), context()
    one.__enter__()
    other.__enter__()
    one.__exit__(None, None, None)  # out of order
    assert holds()
    other.__exit__(None, None, None)
    assert not holds()
    with pytest.raises(RuntimeError, match="not entered"):
        other.__exit__(None, None, None)


class _Entering:
    """A class that enters a context, then records; and one that does so by an ExitStack, or a method of its own."""

    def __init__(self, context: Any, way: str = "hand") -> None:
        self.context, self.way = context, way

    def __enter__(self) -> None:
        self.start() if self.way == "method" else self.stack() if self.way == "stack" else None
        if self.way == "hand":
            self.inner = self.context()
            self.inner.__enter__()
        X * 2, np.sin(X)

    def start(self) -> None:
        self.inner = self.context()
        self.inner.__enter__()
        X * 2

    def stack(self) -> None:
        self.inner = contextlib.ExitStack()
        self.inner.enter_context(self.context())

    def __exit__(self, *exception: Any) -> None:
        self.inner.__exit__(*exception)


def _ways_of_entering(context: Any) -> dict[str, Callable[[], Any]]:
    """Contexts of a user's that enter `context`, and record before their blocks begin."""

    @contextlib.contextmanager
    def recording() -> Iterator[None]:
        with context():
            X * 2, np.sin(X)
            yield

    @contextlib.contextmanager
    def by_hand() -> Iterator[None]:
        manager = context()
        manager.__enter__()
        X * 2
        try:
            yield
        finally:
            manager.__exit__(None, None, None)

    @contextlib.contextmanager
    def delegating() -> Iterator[None]:
        yield from recording.__wrapped__()  # type: ignore[attr-defined]

    @contextlib.contextmanager
    def within_another() -> Iterator[None]:
        with cg.scope("other"), recording():
            yield

    @contextlib.contextmanager
    def with_one_inside() -> Iterator[None]:
        with recording(), cg.scope("other"), cg.default_dtype(np.float64):
            X * 2
            yield

    by_class = {way: lambda way=way: _Entering(context, way) for way in ("hand", "method", "stack")}
    return {
        function.__name__: function for function in (recording, by_hand, delegating, within_another, with_one_inside)
    } | by_class


@pytest.mark.parametrize(("context", "holds"), [c for n, c in CONTEXTS.items() if n != "default_dtype"])
def test_context_holds_if_recording_precedes_block(context: Any, holds: Any) -> None:
    def generator(own: Any) -> Iterator[bool]:
        with own():
            yield holds()
            X * 2
            yield holds()

    for name, own in _ways_of_entering(context).items():
        with own():
            assert holds(), name
            X * 2
            assert holds(), name
        assert not holds(), name
        with pytest.raises(KeyError), own():
            raise KeyError
        assert not holds(), name
        for inside in generator(own):
            assert inside, name
            assert not holds(), name


@REUSABLE
def test_contexts_of_one_statement_hold_across_yield(context: Any, holds: Any) -> None:
    def is_other() -> bool:
        return cg.variable([1.0]).dtype == np.float32

    @contextlib.contextmanager
    def both() -> Iterator[None]:
        with context(), cg.default_dtype(np.float32):
            yield

    @contextlib.contextmanager
    def other_first() -> Iterator[None]:
        with cg.default_dtype(np.float32), context():
            yield

    def iterating() -> Iterator[bool]:
        with context(), cg.default_dtype(np.float32):
            yield holds() and is_other()
            yield holds() and is_other()

    for own in (both, other_first):
        with own():
            assert holds()
            assert is_other()
        assert not holds()
        assert not is_other()
    for inside in iterating():
        assert inside
        assert not holds()
        assert not is_other()


@pytest.fixture(params=["one", "both", "delegating"])
def entered(request: Any) -> Iterator[Any]:
    def one() -> Iterator[None]:
        with cg.no_graph():
            X * 2
            yield

    if request.param == "both":
        with cg.no_graph(), cg.scope("fixture"):
            yield
    elif request.param == "one":
        with cg.no_graph():
            X * 2
            yield
    else:
        yield from one()


def test_context_of_fixture_holds_in_test(entered: Any) -> None:
    assert not isinstance(X * 2, cg.OperationalNode)


def test_context_entered_by_hand_and_dropped_holds() -> None:
    def run() -> bool:
        cg.no_graph().__enter__()
        X * 2
        return isinstance(X * 2, cg.OperationalNode)

    assert not contextvars.copy_context().run(run)
    assert isinstance(X * 2, cg.OperationalNode)


def _in_a_stack(context: Any, holds: Any) -> Iterator[bool]:
    with contextlib.ExitStack() as stack:
        stack.enter_context(context())
        yield holds()
        yield holds()
    yield not holds()


def _in_a_class(context: Any, holds: Any) -> Iterator[bool]:
    class Both(contextlib.ExitStack):
        def __enter__(self) -> Any:
            self.enter_context(context())
            return super().__enter__()

    with Both():
        yield holds()
        yield holds()
    yield not holds()


def _enter_by_hand(context: Any, holds: Any) -> Iterator[bool]:
    manager = context()
    manager.__enter__()
    yield holds()
    yield holds()
    manager.__exit__(None, None, None)
    yield not holds()


@REUSABLE
@pytest.mark.parametrize("enter", [_in_a_stack, _in_a_class, _enter_by_hand])
def test_context_entered_by_hand_in_generator(enter: Any, context: Any, holds: Any) -> None:
    for _ in range(2):
        for number, state in enumerate(enter(context, holds)):
            assert state, number
            assert not holds()


@EACH
def test_context_of_pytest_hook_wrapper(context: Any, holds: Any) -> None:
    """Its context holds for the hooks that it wraps."""

    class HookSpec:
        @pluggy.HookspecMarker("told")
        def is_active(self) -> Any: ...

    class HookImpl:
        @pluggy.HookimplMarker("told")
        def is_active(self) -> bool:
            return bool(holds())

    class Wraps:
        @pluggy.HookimplMarker("told")(wrapper=True)
        def is_active(self) -> Any:
            with context():
                return (yield)

    manager = pluggy.PluginManager("told")
    manager.add_hookspecs(HookSpec)
    manager.register(HookImpl())
    manager.register(Wraps())
    assert manager.hook.is_active() == [True]
    assert not holds()


@pytest.mark.parametrize("enter", [recording_on, lambda: contextlib.ExitStack().enter_context(cg.no_graph())])
def test_context_interrupted_on_entry(enter: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """No ``__exit__`` follows where ``__enter__`` did not return."""
    push = layers._push

    def cut_off(*args: Any) -> None:
        push(*args)
        raise KeyboardInterrupt

    monkeypatch.setattr(layers, "_push", cut_off)
    with pytest.raises(KeyboardInterrupt), enter():
        pass
    assert not list(layers._enclosing_layers())
    assert isinstance(X * 2, cg.OperationalNode)


@REUSABLE
def test_context_object_entered_again(context: Any, holds: Any) -> None:
    again = context()
    for _ in range(2):
        with again:
            with again:
                assert holds()
            assert holds()
        assert not holds()


@SHARED
def test_context_object_in_threads(context: Any, holds: Any) -> None:
    shared = context()
    at_once = threading.Barrier(4)
    checks: list[bool] = []

    def work(k: int) -> None:
        before = holds()
        at_once.wait()
        with shared:
            at_once.wait()
            checks.append(holds() and not before)
            at_once.wait()
            for turn in range(4):
                if turn == k:
                    break
                at_once.wait()
        checks.append(not holds())
        for _ in range(k, 3):
            at_once.wait()

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert checks == [True] * 8


@BY_THREADS
def test_context_of_asyncio_tasks(context: Any, holds: Any) -> None:
    """A coroutine's context applies to coroutines it awaits and to tasks started inside, not to others."""

    async def other() -> bool:
        await asyncio.sleep(0)
        return holds()

    async def inside() -> list[bool]:
        with context():
            task = asyncio.create_task(other())
            states = [holds(), await other(), await asyncio.to_thread(holds), await asyncio.create_task(other())]
        return [*states, await task, not holds()]

    async def generator() -> Any:
        with context():
            yield holds()
            await asyncio.sleep(0)
            yield holds()

    async def main() -> list[bool]:
        both = await asyncio.gather(inside(), other(), inside())
        states = [*both[0], not both[1], *both[2]]
        async for state in generator():
            states += [state, not holds()]
        return states

    assert all(asyncio.run(main()))
    assert not holds()


@BY_THREADS
def test_context_of_tasks_beside_suspended_generator(context: Any, holds: Any) -> None:
    def suspended() -> Iterator[None]:
        with cg.scope("beside"):
            yield

    async def later() -> bool:
        await asyncio.sleep(0)
        return holds()

    @contextlib.asynccontextmanager
    async def ours() -> Any:
        with context():
            yield

    async def generator() -> Any:
        async with ours(), contextlib.AsyncExitStack() as stack:
            stack.enter_context(contextlib.nullcontext())
            yield holds()
            await asyncio.sleep(0)
            yield holds()

    async def main() -> list[bool]:
        async with ours():
            await asyncio.sleep(0)
            states = [holds()]
        states.append(not holds())
        with context():
            task = asyncio.create_task(later())  # ``patched_numpy`` is everybody's while any is open
            states.append(await task if context is cg.patched_numpy else holds())
        states.append(await task)
        async for state in generator():
            states += [state, not holds()]
        return states

    beside = suspended()
    next(beside)
    assert all(asyncio.run(main()))
    assert not holds()
    beside.close()


@EACH
def test_context_ends_on_error(context: Any, holds: Any) -> None:
    with pytest.raises(KeyError), context():
        raise KeyError
    assert not holds()


def test_default_dtype_called_within_context() -> None:
    with cg.default_dtype(np.float32):
        cg.default_dtype(np.float16)
        assert cg.variable([1.0]).dtype == np.float16
        with cg.default_dtype(np.float64):
            assert cg.variable([1.0]).dtype == np.float64
        assert cg.variable([1.0]).dtype == np.float16
    assert cg.variable([1.0]).dtype == np.float64


# ------------------------------------------------------------------------------------------- interrupts

OURS = tuple(str(Path(package.__file__ or "").parent) for package in (cg, ad))


def _may_be_interrupted(program: Any) -> Callable[[CodeType], bool]:
    """Predicate for code that may be interrupted: the code of this project and of the program."""

    def within(code: CodeType) -> bool:
        if code.co_name == "<genexpr>":
            return False  # it may run once more to be closed, by a finalizer, where errors are lost
        return code.co_filename.startswith(OURS) or code is program.__code__

    return within


def _in_context(context: Any) -> Callable[[], object]:
    def program() -> None:
        with context():
            np.sin(X)

    return program


def _differentiating(operator: Any) -> Callable[[], object]:
    def program() -> None:
        operator(np.array([0.5, 0.25]))

    return program


def _f(x: Any) -> Any:
    with cg.scope("inside"):
        buffer = cg.zeros(2)
        buffer[:] = np.sin(x) * x
    return np.sum(np.where(buffer > 0, np.sqrt(buffer), 0.0))


def _record(x: Any) -> Any:
    x = cg.variable(x)
    return gradient(_f(x), x, create_graph=True)


def _executor(x: Any) -> Any:
    p = cg.placeholder((2,))
    result = np.sum(np.sqrt(p) * p)
    return cg.Executor([result, *gradients(result, [p])]).run({p: x})


PROGRAMS = {
    # Of default_dtype(...), the call alone sets it.
    **{name: _in_context(context) for name, (context, _) in CONTEXTS.items() if name != "default_dtype"},
    "grad": _differentiating(ad.grad(_f)),
    "jvp": _differentiating(lambda x: ad.jvp(_f, (x,), (x,))),
    "jacfwd": _differentiating(ad.jacfwd(_f)),
    "hessian": _differentiating(ad.hessian(lambda x: np.sum(np.sin(x) ** 2))),
    "checkpoint": _differentiating(ad.grad(ad.checkpoint(lambda x: np.sum(np.exp(x))))),
    "taylor": _differentiating(lambda x: ad.taylor(np.sin, x, 2)),
    "gradient": _differentiating(_record),
    "check_gradient": _differentiating(lambda x: ad.reverse.check_gradient(_f, [x])),
    "executor": _differentiating(lambda x: _executor(x)),
    "value_and_grad": _differentiating(ad.value_and_grad(_f)),
}


def _state() -> dict[str, Any]:
    """State that a context could leave changed."""
    x = cg.variable([1.0, 2.0])
    buffer = cg.zeros(2)
    product = x * 2
    return {
        "errstate": np.geterr(),
        "call": np.geterrcall(),
        "held": [name for name, (_, holds) in CONTEXTS.items() if holds()],
        "kinds": (type(x), type(buffer), type(product)),
        "quick": is_fast_path(),
        "names": (np.zeros, np.linspace),
        "derivative": gradient(np.sum(product * x))[x].tolist(),
    }


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # within a finalizer, Python swallows it
@pytest.mark.parametrize("count", [15, pytest.param(60, marks=pytest.mark.exhaustive)])
@pytest.mark.parametrize("name", PROGRAMS)
def test_context_restores_state_after_any_interrupt(name: str, count: int) -> None:
    """Whatever instruction a signal interrupts, all is as before."""
    program, before = PROGRAMS[name], _state()
    within = _may_be_interrupted(program)
    program()  # fill caches first
    whole = Interruption(None, within)
    whole(program)
    rng = np.random.default_rng(sum(name.encode()))
    most = min(whole.steps, count)
    for at in np.sort(rng.choice(whole.steps, most, replace=False)) + 1:
        Interruption(int(at), within)(program)
        assert _state() == before, f"interrupted at instruction {at} of {whole.steps}"
