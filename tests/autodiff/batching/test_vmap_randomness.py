"""Random numbers within `vmap`: errors, one draw for the batch, one per element, and draws detected afterwards."""

from __future__ import annotations

import inspect
import random
import statistics
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from random import gauss
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from numpy.random import normal, randn
from scipy import sparse, stats
from scipy.sparse.linalg import onenormest

import autodiff as ad
from tests.support.drawing_objects import (
    CLASSES,
    DERIVED,
    DICTIONARY,
    FUNCTIONS,
    GENERATOR,
    GRADIENT,
    NAMED,
    OBJECT,
    OLD,
    PACKAGE,
    QUEUE,
    SLOTS,
    YIELDING,
    Derived,
    Described,
    Drawing,
    by_attribute,
    cached,
)
from tests.support.failures import Failures
from tests.support.for_each import for_each

XS = np.arange(5.0)
PYTHONS = random.Random(3)
PARTIAL, SYSTEM = partial(normal, 0.0, 1.0), random.SystemRandom()
HOLDER = SimpleNamespace(rng=np.random.default_rng(3))
BITS, SEEDS = np.random.PCG64(3), np.random.SeedSequence(3)


DRAWS: dict[str, Callable[[], Any]] = {
    "normal": lambda: np.random.normal(),  # noqa: NPY002
    "sized": lambda: np.random.normal(0.0, 1.0, (2, 3)),  # noqa: NPY002
    "parameters that are arrays": lambda: np.random.normal(np.arange(3.0), 2.0),  # noqa: NPY002
    "imported by name": lambda: randn(2),  # noqa: NPY002
    "rand": lambda: np.random.rand(2, 2),  # noqa: NPY002
    "randint": lambda: np.random.randint(0, 1000, 3),  # noqa: NPY002
    "permutation": lambda: np.random.permutation(50),  # noqa: NPY002
    "generator": lambda: GENERATOR.normal(size=2),
    "integers": lambda: GENERATOR.integers(0, 1000, 3, np.int32),
    "gamma": lambda: GENERATOR.gamma(2.0, 1.0, 3),
    "choice": lambda: GENERATOR.choice(1000, 2),
    "generator without a seed": lambda: np.random.default_rng().random(2),
    "Python": lambda: random.gauss(0.0, 1.0),
    "Python's by name": lambda: gauss(0.0, 1.0),
    "Python's uniform": lambda: random.uniform(0.0, 1.0),
    "items of a list": lambda: random.sample(range(1000), 3)[1],
    "SciPy with a generator": lambda: stats.norm.rvs(size=2, random_state=GENERATOR),
}


def spread(f: Callable[[], Any], randomness: str, xs: Any = XS) -> Any:
    """The draws of each batch element, as rows."""
    result = ad.vmap(lambda x: x * 0 + f(), randomness=randomness)(xs)
    return np.reshape(result, (len(xs), -1))


@for_each("name", DRAWS)
def test_vmap_randomness_option_of_each_draw(name: str) -> None:
    f = DRAWS[name]
    with pytest.raises(TypeError, match="randomness='different'"):
        spread(f, "error")
    shared, own = spread(f, "same"), spread(f, "different")
    assert np.all(shared == shared[0])
    assert shared.shape == own.shape
    assert len(np.unique(own, axis=0)) == len(XS)


def test_vmap_draws_follow_the_distribution() -> None:
    result = spread(lambda: GENERATOR.normal(3.0, 2.0, size=(2, 50)), "different", np.zeros(200))
    assert abs(result.mean() - 3) < 0.1
    assert abs(result.std() - 2) < 0.1


SEEDED: dict[str, Callable[[], Any]] = {
    "generator": lambda: np.random.default_rng(0).normal(size=2),
    "SciPy": lambda: stats.norm.rvs(size=2, random_state=3),
}


@for_each("randomness", ["error", "different", "same"])
@for_each("name", SEEDED)
def test_vmap_generator_seeded_inside_gives_equal_draws(name: str, randomness: str) -> None:
    np.testing.assert_array_equal(spread(SEEDED[name], randomness), np.stack([SEEDED[name]()] * len(XS)))


UNSEEN: dict[str, Callable[[], Any]] = {
    "attribute": lambda: HOLDER.rng.normal(),
    "older kind": lambda: OLD.normal(),
    "Python's object": lambda: PYTHONS.random(),
    "SciPy": lambda: stats.norm.rvs(size=2),
    "a method in a list": lambda source=[normal]: source[0](),
    "a method as a default": lambda draw=normal: draw(),
    "a method of a generator": lambda draw=HOLDER.rng.normal: draw(),
    "a method of Python's": lambda *, draw=PYTHONS.random: draw(),
    "a partial": lambda: PARTIAL(),
    "what the system draws": lambda: SYSTEM.random(),
    "without a seed": lambda: np.random.RandomState().normal(),
    "bits without a seed": lambda: np.random.Generator(np.random.PCG64()).normal(),
    "bits": lambda: np.random.Generator(BITS).normal(),
    "bits of a generator": lambda: GENERATOR.bit_generator.random_raw() % 1000,
    "seeds": lambda: np.random.default_rng(SEEDS.spawn(1)[0]).normal(),
    "of a class": lambda: Drawing.normal(),
    "of an object": lambda: OBJECT.normal(),
    "static": lambda: Drawing.static(),
    "a partial of a class": lambda: Drawing.partly(),
    "Python's of a class": lambda: Drawing.python(0.0, 1.0),
    "a generator of a class": lambda: Drawing.rng.normal(),
    "a generator of an object": lambda: Drawing().rng.normal(),
    "an older one of a class": lambda: Drawing.old.normal(),
    "of a base class": lambda: Derived.static(),
    "of an object's base class": lambda: DERIVED.rng.normal(),
    "of a class of classes": lambda: Drawing.drawn_by_class(),
    "of a class in a class": lambda: Drawing.Within.normal(),
    "of a class in a list": lambda: CLASSES[0].static(),
    "of a class in a dictionary": lambda: DICTIONARY["class"].static(),
    "of a class in a variable around": (lambda source: lambda: source.static())(Drawing),
    "of a class as a default": lambda source=Drawing: source.static(),
    "of a class in an attribute": lambda: SimpleNamespace(source=Drawing).source.static(),
    "by a method": lambda: OBJECT.method(),
    "by a method of a class": lambda: Drawing.of_class(),
    "by a property": lambda: OBJECT.attribute,
    "by a call of an object": lambda: OBJECT(),
    "by an operator": lambda: 0.0 + OBJECT,
    "by a descriptor": lambda: Described().drawn,
    "by a method from a global generator": lambda: OBJECT.global_generator(),
    "a slot": lambda: SLOTS.rng.normal(),
    "an attribute of a function": lambda: by_attribute(),
    "by a function in a list": lambda: FUNCTIONS[0](),
    "by a generator": lambda: next(YIELDING),
    "by a remembering function": lambda: cached(1),
    "by a gradient": lambda: GRADIENT(1.0),
    "by np.vectorize": lambda: np.vectorize(lambda k: OLD.normal() + k)(0.0),
    "a field": lambda: NAMED.rng.normal(),
    "a queue": lambda: QUEUE[0].normal(),
    "a module in a module": lambda: PACKAGE.inner.old.normal(),
    "of a class in a module": lambda: PACKAGE.Drawing.static(),
    "the shared one in a variable": lambda: (lambda source: source.normal())(np.random.mtrand._rand),  # type: ignore[attr-defined]
}


@for_each("name", UNSEEN)
def test_vmap_draw_detected_too_late_raises(name: str) -> None:
    for randomness in ("error", "different"):
        with pytest.raises(TypeError, match=r"cannot intercept.*as an argument"):
            spread(UNSEEN[name], randomness)
    shared = spread(UNSEEN[name], "same")
    assert np.all(shared == shared[0])


def test_vmap_draws_of_bound_methods_are_detected() -> None:
    """Also if all names in the code are functions that do not draw."""
    for f in (OBJECT.mean_added, partial(lambda source, x: x + source.mean(), Drawing)):
        with pytest.raises(TypeError, match=r"cannot intercept.*as an argument"):
            ad.vmap(f)(XS)


@for_each("code", ["eval('np.random.normal()')", "getattr(np, 'random').normal()", "globals()['OLD'].normal()"])
def test_vmap_draws_without_a_name_are_detected(code: str) -> None:
    space: dict[str, Any] = {"np": np, "OLD": OLD}
    exec(f"def f(x): return x + {code}", space)
    with pytest.raises(TypeError, match="random"):
        ad.vmap(space["f"])(XS)


def test_vmap_draws_within_libraries_raise() -> None:
    """Draws in libraries raise, except SciPy's own draws in estimators."""
    with pytest.raises(TypeError, match="randomness"):
        spread(lambda: statistics.NormalDist().samples(1)[0], "error")
    matrix = sparse.eye(50, format="csr")
    for randomness in ("error", "different"):
        np.testing.assert_allclose(spread(lambda: onenormest(matrix), randomness), np.ones((5, 1)))


def test_vmap_allowed_draw_does_not_hide_others() -> None:
    for f in (lambda: FUNCTIONS[0]() + np.random.normal(), lambda: np.random.normal() + FUNCTIONS[0]()):  # noqa: NPY002
        with pytest.raises(TypeError, match=r"cannot intercept.*as an argument"):
            spread(f, "different")


def test_vmap_cached_normal_draw_is_detected() -> None:
    """NumPy draws normal numbers in pairs: the second draw leaves the generator's state unchanged."""
    np.random.seed(0)  # noqa: NPY002
    for _ in range(5):
        np.random.normal()  # noqa: NPY002
        with pytest.raises(TypeError, match=r"cannot intercept.*as an argument"):
            spread(lambda: Drawing.normal(), "error")
        np.testing.assert_array_equal(spread(lambda: np.zeros(1)[0], "error"), np.zeros((5, 1)))


def test_vmap_ignores_draws_of_other_threads() -> None:
    code = """
        import threading, numpy as np, autodiff as ad
        def other():
            np.random.normal()
        def f(x):
            thread = threading.Thread(target=other)
            thread.start()
            thread.join()
            return x + np.zeros(2)
        assert ad.vmap(f)(np.zeros(3)).shape == (3, 2)
    """
    subprocess.run([sys.executable, "-c", inspect.cleandoc(code)], check=True)


LATER: Any = np.sin


def test_vmap_rebound_names_of_draws_are_detected() -> None:
    """Also where the function was called before, and in a list."""
    global LATER
    functions: list[Any] = [np.sin]

    def by_name(x: Any) -> Any:
        return LATER(x)

    def by_list(x: Any) -> Any:
        return functions[0](x)

    for f in (by_name, by_list):
        np.testing.assert_array_equal(ad.vmap(f)(XS), np.sin(XS))
    LATER = functions[0] = lambda x: x + np.random.normal()  # noqa: NPY002
    try:
        for f in (by_name, by_list):
            with pytest.raises(TypeError, match="randomness"):
                ad.vmap(f)(XS)
            assert np.ptp(ad.vmap(f, randomness="different")(np.zeros(3))) > 0
    finally:
        LATER = np.sin


def test_vmap_generator_of_method_object_is_detected() -> None:
    class Model:
        def __init__(self) -> None:
            self.rng = np.random.default_rng(0)

        def noisy(self, x: Any) -> Any:
            return x + self.rng.normal()

    with pytest.raises(TypeError, match=r"cannot intercept.*as an argument"):
        ad.vmap(Model().noisy)(XS)


def test_vmap_generator_as_argument() -> None:
    f = ad.vmap(lambda x, rng: x + rng.normal(), in_axes=(0, None), randomness="different")
    result = f(np.zeros(5), np.random.default_rng(0))
    assert len(np.unique(result)) == 5
    np.testing.assert_array_equal(result, f(np.zeros(5), np.random.default_rng(0)))


def test_nested_vmap_randomness_per_level() -> None:
    def count(inner: str, outer: str) -> int:
        rows = ad.vmap(lambda x: x + np.random.normal(), randomness=inner)  # noqa: NPY002
        return len(np.unique(ad.vmap(rows, randomness=outer)(np.zeros((3, 4)))))

    assert count("different", "different") == 12
    assert count("same", "different") == 3
    assert count("different", "same") == 4
    with pytest.raises(TypeError, match="randomness"):
        count("error", "different")


def test_vmap_draws_with_batched_parameters() -> None:
    gradients = ad.vmap(ad.grad(lambda m: np.random.normal(m, 1.0, size=3) @ np.ones(3)), randomness="different")(XS)  # noqa: NPY002
    np.testing.assert_allclose(gradients, 3.0)
    rng = np.random.default_rng(0)
    samples = ad.vmap(lambda s: rng.normal(0.0, s), randomness="different")(np.array([1.0, 1e6]))
    assert abs(samples[1]) > abs(samples[0])


def test_vmap_shuffle_and_seed_raise() -> None:
    orders: list[Callable[[], Any]] = [
        lambda: GENERATOR.shuffle(np.arange(3)),
        lambda: random.shuffle([1, 2]),
        lambda: np.random.seed(0),  # noqa: NPY002
    ]
    for order in orders:
        with pytest.raises(TypeError, match=r"permutation|seed before vmap"):
            ad.vmap(lambda x, order=order: (order(), x)[1], randomness="different")(XS)


def test_vmap_spawned_generators_raise() -> None:
    with pytest.raises(TypeError, match="randomness"):
        spread(lambda: GENERATOR.spawn(1)[0].normal(), "error")
    with pytest.raises(TypeError, match="cannot differ between batch elements"):
        spread(lambda: GENERATOR.spawn(1)[0].normal(), "different")


def test_vmap_restores_names_of_draws() -> None:
    before = np.random.rand, random.random, np.random.normal
    spread(DRAWS["rand"], "different")
    assert all(a is b for a, b in zip(before, (np.random.rand, random.random, np.random.normal), strict=True))


def test_vmap_draws_with_arguments_after_size() -> None:
    draws: dict[str, Callable[[Any, Any], Any]] = {
        "dtype": lambda rng, shape: rng.integers(0, 1000, shape, np.int16),
        "dtype and endpoint": lambda rng, shape: rng.integers(0, 1, shape, np.int64, True),
        "dtype of standard draws": lambda rng, shape: rng.standard_normal(shape, np.float32),
        "size alone": lambda rng, shape: rng.normal(1.0, 2.0, shape),
        "size by name": lambda rng, shape: rng.normal(1.0, size=shape),
    }
    with Failures("draws") as failures:
        for name, draw in draws.items():
            with failures.case(name):
                rng = np.random.default_rng(5)
                result = ad.vmap(lambda x, rng: draw(rng, (2,)) + 0 * x, in_axes=(0, None), randomness="different")(  # noqa: B023
                    np.zeros((4, 2), np.float32), rng
                )
                np.testing.assert_allclose(result, draw(np.random.default_rng(5), (4, 2)), rtol=1e-6)


def test_vmap_draws_of_empty_batch_keep_keyword_arguments() -> None:
    rng = np.random.default_rng(0)
    choose = ad.vmap(lambda x: x + rng.choice(np.arange(5.0), size=3), randomness="different")
    draw = ad.vmap(lambda x: x + rng.dirichlet(alpha=[1.0, 2.0]), randomness="different")
    indices = ad.vmap(lambda x: rng.choice(5, size=2), randomness="different")(np.zeros(0))
    assert choose(np.zeros(0)).shape == (0, 3)
    assert draw(np.zeros(0)).shape == (0, 2)
    assert indices.shape == (0, 2)
    assert indices.dtype.kind == "i"
