"""The argument `learning_rate` of all optimizers and schedules, and `rate`, its former name."""

from __future__ import annotations

import dataclasses
import inspect
import pickle
import warnings
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from autodiff import optimizers
from autodiff.optimizers import SGD, Adam, Cosine, History, Optimizer, StepController
from tests.support.for_each import for_each

CLASSES: dict[str, Any] = {name: vars(optimizers)[name] for name in optimizers.__all__}
OPTIMIZERS: dict[str, Any] = {
    name: cls for name, cls in CLASSES.items() if isinstance(cls, type) and issubclass(cls, Optimizer) and cls is not Optimizer
}
MOVING = {name: cls for name, cls in OPTIMIZERS.items() if cls is not StepController}
SCHEDULES: dict[str, Callable[..., Any]] = {
    "Constant": lambda **rate: optimizers.Constant(**rate),
    "Cosine": lambda **rate: Cosine(steps=10, **rate),
    "Exponential": lambda **rate: optimizers.Exponential(factor=0.5, **rate),
    "Polynomial": lambda **rate: optimizers.Polynomial(steps=10, **rate),
    "StepDecay": lambda **rate: optimizers.StepDecay(every=2, **rate),
}


def parameters_after_steps(optimizer: Any) -> Any:
    """The parameters after two steps."""
    for slope in (1.0, -0.5):
        optimizer.step([slope], *([1.0] if isinstance(optimizer, StepController) else []))
    return optimizer.parameters


def test_tables_cover_every_class() -> None:
    assert len(OPTIMIZERS) == 6
    fields = {
        name
        for name, cls in CLASSES.items()
        if dataclasses.is_dataclass(cls) and "learning_rate" in {field.name for field in dataclasses.fields(cls)}
    }
    assert set(SCHEDULES) == fields


@for_each("name", OPTIMIZERS)
def test_rate_argument_warns_at_line_of_caller(name: str) -> None:
    with pytest.warns(DeprecationWarning, match=f"{name}: the argument rate= is now learning_rate=") as caught:
        old, line = OPTIMIZERS[name]([1.0], rate=0.25), inspect.currentframe().f_lineno  # type: ignore[union-attr]
    assert [(w.filename, w.lineno) for w in caught] == [(__file__, line)]
    assert (
        parameters_after_steps(old)
        == parameters_after_steps(OPTIMIZERS[name]([1.0], learning_rate=0.25))
        == parameters_after_steps(OPTIMIZERS[name]([1.0], 0.25))
    )


@for_each("name", OPTIMIZERS)
def test_rate_attribute_warns_at_line_of_caller(name: str) -> None:
    optimizer = OPTIMIZERS[name]([1.0], learning_rate=0.25)
    with pytest.warns(DeprecationWarning, match=f"{name}: the attribute rate is now learning_rate") as caught:
        assert optimizer.rate == 0.25
    with pytest.warns(DeprecationWarning, match=f"{name}: the attribute rate is now learning_rate") as caught_write:
        optimizer.rate = 0.5
    assert {w.filename for w in [*caught, *caught_write]} == {__file__}
    assert optimizer.learning_rate == 0.5


@for_each("name", OPTIMIZERS)
def test_rate_and_learning_rate_together_raise(name: str) -> None:
    with pytest.raises(TypeError, match=f"{name}: rate= is the former name of learning_rate="):
        OPTIMIZERS[name]([1.0], rate=0.1, learning_rate=0.1)
    with pytest.raises(TypeError, match="multiple values"), pytest.warns(DeprecationWarning, match="learning_rate="):
        OPTIMIZERS[name]([1.0], 0.1, rate=0.1)


@for_each("name", SCHEDULES)
def test_schedule_rate_argument_warns(name: str) -> None:
    make = SCHEDULES[name]
    with pytest.warns(DeprecationWarning, match=f"{name}: the argument rate= is now learning_rate="):
        old = make(rate=0.25)
    assert old == make(learning_rate=0.25)
    with pytest.warns(DeprecationWarning, match=f"{name}: the attribute rate is now learning_rate"):
        assert old.rate == 0.25
    with pytest.raises(TypeError, match="former name"):
        make(rate=0.25, learning_rate=0.25)


@for_each("name", SCHEDULES)
def test_schedules_pickled_by_earlier_releases_load(name: str) -> None:
    schedule = SCHEDULES[name](learning_rate=0.25)
    old = pickle.dumps(schedule, 0).replace(b"Vlearning_rate\n", b"Vrate\n")
    assert old != pickle.dumps(schedule, 0)
    assert pickle.loads(old) == schedule
    assert pickle.loads(old)(0) == 0.25


def test_history_rate_attribute_warns() -> None:
    history = History(np.zeros(1), np.zeros(1), np.ones(1))
    with pytest.warns(DeprecationWarning, match="History: the attribute rate is now learning_rate"):
        assert history.rate is history.learning_rate  # type: ignore[attr-defined]


@for_each("name", OPTIMIZERS)
def test_states_of_earlier_releases_load(name: str) -> None:
    trained, resumed = OPTIMIZERS[name]([1.0], 0.25), OPTIMIZERS[name]([2.0], 0.5)
    parameters_after_steps(trained)
    state = trained.state_dict()
    resumed.load_state_dict({"rate" if key == "learning_rate" else key: value for key, value in state.items()})
    assert resumed.learning_rate == trained.learning_rate
    assert parameters_after_steps(resumed) == parameters_after_steps(trained)


@for_each("name", OPTIMIZERS)
def test_learning_rate_wrong_value_raises_at_construction(name: str) -> None:
    make = OPTIMIZERS[name]
    values: list[Any] = ["0.1", b"0.1", None, [0.1], np.ones(1), 1j, np.complex128(1), np.str_("0.1"), np.array("0.1"), {}]
    for value in values:
        with pytest.raises(TypeError, match="learning_rate must be a number, not"):
            make([1.0], learning_rate=value)
    for value in (-0.1, np.nan, np.inf, -np.inf, np.float32(-1)):
        with pytest.raises(ValueError, match=r"learning_rate must be finite and in \[0, inf\), not"):
            make([1.0], learning_rate=value)
    optimizer = make([1.0], learning_rate=0.25)
    for value in values:
        if not callable(value):
            with pytest.raises(TypeError, match="learning_rate must be a number"):
                optimizer.learning_rate = value
    assert optimizer.learning_rate == 0.25


@for_each("name", OPTIMIZERS)
def test_learning_rate_accepts_numbers_of_all_kinds(name: str) -> None:
    for value in (1, 0.25, np.float32(0.25), np.array(0.25), np.int64(1), Fraction(1, 4)):
        rate = OPTIMIZERS[name]([1.0], learning_rate=value).learning_rate
        assert type(rate) is float
        assert rate == float(value)


@for_each("name", MOVING)
def test_learning_rate_accepts_function_of_step(name: str) -> None:
    make, steps = MOVING[name], []

    def schedule(step: int) -> float:
        steps.append(step)
        return 0.5 / (1 + step)

    scheduled, by_hand = make([1.0], learning_rate=schedule), make([1.0], learning_rate=0.5)
    for step, slope in enumerate((1.0, -0.5, 0.25)):
        by_hand.learning_rate = 0.5 / (1 + step)
        by_hand.step([slope])
        scheduled.step([slope])
        assert scheduled.parameters == by_hand.parameters
    assert steps == [0, 1, 2]
    assert "learning_rate" not in scheduled.state_dict()


@for_each("name", MOVING)
def test_schedule_wrong_result_raises_and_changes_nothing(name: str) -> None:
    for value, error in (("0.1", TypeError), (None, TypeError), (np.nan, ValueError), (-1.0, ValueError)):
        optimizer = MOVING[name]([1.0], learning_rate=lambda step, value=value: value if step else 0.25)
        optimizer.step([1.0])
        before = optimizer.parameters
        with pytest.raises(error, match=r"learning_rate\(1\) must be"):
            optimizer.step([1.0])
        assert optimizer.parameters == before
        assert optimizer.steps == 1


def test_step_controller_schedule_raises() -> None:
    with pytest.raises(TypeError, match="takes no schedule"):
        StepController([1.0], learning_rate=Cosine(0.1, 10))  # type: ignore[arg-type]


def test_rate_of_subclass_is_kept() -> None:
    class Halved(SGD):
        def __init__(self, parameters: Any, rate: float) -> None:
            super().__init__(parameters, rate / 2)

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert Halved([1.0], rate=0.5).learning_rate == 0.25


def test_learning_rate_is_in_signature() -> None:
    assert "learning_rate" in inspect.signature(Adam.__init__).parameters
    assert "rate" not in inspect.signature(Adam.__init__).parameters
