"""The network as an estimator: scikit-learn's own checks, and further ones."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from estimator import NetworkClassifier, NetworkRegressor, main
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import check_estimator

from tests.support.failures import Failures


@pytest.mark.parametrize(
    "estimator",
    [
        pytest.param(NetworkClassifier(epochs=30), id="short classifier"),
        pytest.param(NetworkRegressor(epochs=30), id="short regressor"),
        pytest.param(NetworkClassifier(), id="classifier", marks=pytest.mark.exhaustive),
        pytest.param(NetworkRegressor(), id="regressor", marks=pytest.mark.exhaustive),
    ],
)
def test_estimator_passes_checks_of_scikit_learn(estimator: Any) -> None:
    results = check_estimator(estimator, on_skip=None, on_fail=None)
    with Failures("checks of scikit-learn") as failures:
        for result in results:
            with failures.case(result["check_name"]):
                if result["status"] not in ("passed", "skipped"):
                    raise result["exception"]
    assert sum(result["status"] == "passed" for result in results) > 45


def samples() -> tuple[Any, Any]:
    X, y = load_iris(return_X_y=True)  # noqa: N806
    return StandardScaler().fit_transform(X), y


def test_early_stopping_keeps_best_weights() -> None:
    X, y = samples()  # noqa: N806
    model = NetworkClassifier(early_stopping=True, patience=3, validation_fraction=0.3, random_state=0).fit(X, y)
    assert 3 < model.n_iter_ < 100
    assert model.score(X, y) > 0.9
    # With the same numbers drawn, it would have gone on otherwise.
    assert NetworkClassifier(epochs=model.n_iter_ + 5, random_state=0).fit(X, y).n_iter_ == model.n_iter_ + 5
    with pytest.raises(ValueError, match="none is left to train on"):
        NetworkClassifier(early_stopping=True, validation_fraction=1.0).fit(X, y)


def test_warm_start_continues_training() -> None:
    X, y = samples()  # noqa: N806
    whole = NetworkClassifier(epochs=6, random_state=0).fit(X, y)
    parts = NetworkClassifier(epochs=3, random_state=0, warm_start=True).fit(X, y).fit(X, y)
    assert parts.n_iter_ == 6
    np.testing.assert_array_equal(whole.predict_proba(X), parts.predict_proba(X))
    anew = NetworkClassifier(epochs=3, random_state=0).fit(X, y).fit(X, y)
    assert anew.n_iter_ == 3


def test_partial_fit_trains_incrementally() -> None:
    X, y = samples()  # noqa: N806
    model = NetworkClassifier(random_state=0)
    for rows in np.array_split(np.arange(150), 3):  # each part has one class alone
        model.partial_fit(X[rows], y[rows], classes=[0, 1, 2])
    for _ in range(60):
        model.partial_fit(X, y)
    assert model.score(X, y) > 0.9
    with pytest.raises(ValueError, match=r"the classes \[7\] were not among those known"):
        model.partial_fit(X[:1], [7])


def test_estimator_works_in_pipelines_and_searches() -> None:
    X, y = samples()  # noqa: N806
    search = GridSearchCV(make_pipeline(StandardScaler(), NetworkClassifier(epochs=20, random_state=0)),
                          {"networkclassifier__hidden": [2, 16]}, cv=2)  # fmt: skip
    assert search.fit(X, y).best_score_ > 0.8
    assert clone(NetworkRegressor(hidden=3)).get_params()["hidden"] == 3


@pytest.mark.slow
def test_estimator_script_runs(capsys: pytest.CaptureFixture[str]) -> None:
    assert main() == 0
    digits, diabetes = capsys.readouterr().out.splitlines()
    assert float(digits.split("score ")[1].split()[0]) > 0.95
    assert float(diabetes.split("score ")[1].split()[0]) > 0.3
