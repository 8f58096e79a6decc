"""A network as a scikit-learn estimator, for pipelines and grid searches: a template.

`Network` has the common parts; a classifier and a regressor define their targets and losses.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets, unique_labels
from sklearn.utils.validation import check_is_fitted, validate_data

import compgraph as cg
from autodiff.optimizers import Adam
from autodiff.reverse import gradient

Array = np.ndarray[Any, Any]


class Network(BaseEstimator):  # type: ignore[misc]
    """A layer of hidden units, trained by Adam on batches; with `early_stopping` until the held-out score stops improving."""

    def __init__(
        self, hidden: int = 32, learning_rate: float = 0.02, epochs: int = 100, batch_size: int = 32,
        early_stopping: bool = False, validation_fraction: float = 0.1, patience: int = 10, warm_start: bool = False,
        random_state: Any = None,
    ) -> None:  # fmt: skip
        self.hidden, self.learning_rate, self.epochs, self.batch_size = hidden, learning_rate, epochs, batch_size
        self.early_stopping, self.validation_fraction, self.patience = early_stopping, validation_fraction, patience
        self.warm_start, self.random_state = warm_start, random_state

    def fit(self, X: Any, y: Any) -> Self:  # noqa: N803  (scikit-learn's name)
        """Train from new weights, or with `warm_start` from the current ones."""
        is_new = not (self.warm_start and hasattr(self, "parameters_"))
        X, y = self._checked(X, y, is_new)  # noqa: N806
        if is_new:
            self._start(X.shape[1])
        held_out = np.zeros(len(X), bool)
        if self.early_stopping:
            count = max(1, round(self.validation_fraction * len(X)))
            if count >= len(X):
                raise ValueError(f"early_stopping holds {count} of {len(X)} samples out, and none is left to train on")
            held_out[self.rng_.permutation(len(X))[:count]] = True
        best, kept, waited = np.inf, self._weights(), 0
        for _epoch in range(self.epochs):
            self._epoch(X[~held_out], y[~held_out])
            if not self.early_stopping:
                continue
            loss = float(self._loss(self._output(X[held_out]), y[held_out]))
            best, kept, waited = (loss, self._weights(), 0) if loss < best else (best, kept, waited + 1)
            if waited >= self.patience:
                break
        if self.early_stopping:
            for name, value in kept.items():
                self.parameters_[name][...] = value
        return self

    def partial_fit(self, X: Any, y: Any, classes: Any = None) -> Self:  # noqa: N803
        """Train one epoch on further samples; the first call of a classifier needs all `classes`."""
        is_new = not hasattr(self, "parameters_")
        X, y = self._checked(X, y, is_new, classes)  # noqa: N806
        if is_new:
            self._start(X.shape[1])
        self._epoch(X, y)
        return self

    def _start(self, features: int) -> None:
        self.rng_ = check_random_state(self.random_state)
        sizes = {"w1": (features, self.hidden), "b1": self.hidden, "w2": (self.hidden, self._outputs()), "b2": self._outputs()}
        values = {name: self.rng_.normal(size=size) / np.sqrt(np.atleast_1d(size)[0]) for name, size in sizes.items()}
        self.parameters_ = {name: cg.variable(value * (name[0] == "w"), name) for name, value in values.items()}
        self.optimizer_ = Adam(self.parameters_, learning_rate=self.learning_rate)
        self.n_iter_ = 0

    def _epoch(self, X: Array, y: Array) -> None:  # noqa: N803
        for rows in self._batches(len(X)):
            self.optimizer_.step(gradient(self._loss(self._output(X[rows]), y[rows])))
        self.n_iter_ += 1

    def _batches(self, count: int) -> Iterator[Array]:
        yield from np.array_split(self.rng_.permutation(count), max(1, count // self.batch_size))

    def _output(self, X: Array) -> Any:  # noqa: N803
        p = self.parameters_
        return np.tanh(X @ p["w1"] + p["b1"]) @ p["w2"] + p["b2"]

    def _predicted(self, X: Any) -> Array:  # noqa: N803
        check_is_fitted(self)
        with cg.no_graph():
            return np.asarray(self._output(validate_data(self, X, reset=False, dtype=np.float64)))

    def _weights(self) -> dict[str, Array]:
        return {name: parameter.value.copy() for name, parameter in self.parameters_.items()}


class NetworkClassifier(ClassifierMixin, Network):  # type: ignore[misc]
    """Classes, by softmax and cross-entropy."""

    def _checked(self, X: Any, y: Any, is_new: bool, classes: Any = None) -> tuple[Array, Array]:  # noqa: N803
        X, y = validate_data(self, X, y, reset=is_new, dtype=np.float64)  # noqa: N806
        check_classification_targets(y)
        if is_new:
            self.classes_ = unique_labels(y if classes is None else classes)
        unknown = np.setdiff1d(y, self.classes_)
        if len(unknown):
            raise ValueError(f"the classes {unknown} were not among those known from the start, {self.classes_}")
        return X, np.searchsorted(self.classes_, y)

    def _outputs(self) -> int:
        return len(self.classes_)

    def _loss(self, output: Any, y: Array) -> Any:
        return cg.softmax_cross_entropy(output, y)

    def predict_proba(self, X: Any) -> Array:  # noqa: N803
        """The probability of each class."""
        return np.asarray(cg.softmax(self._predicted(X), axis=1))

    def predict(self, X: Any) -> Array:  # noqa: N803
        """The most probable class of each sample."""
        best = np.argmax(self._predicted(X), axis=1)
        return np.asarray(self.classes_[best])


class NetworkRegressor(RegressorMixin, Network):  # type: ignore[misc]
    """Regression by the mean squared error, in units of the standard deviation of the first targets."""

    def _checked(self, X: Any, y: Any, is_new: bool, classes: Any = None) -> tuple[Array, Array]:  # noqa: N803
        X, y = validate_data(self, X, y, reset=is_new, dtype=np.float64, y_numeric=True)  # noqa: N806
        if is_new:
            self.mean_, self.scale_ = np.mean(y), np.std(y) or 1.0
        return X, (y - self.mean_) / self.scale_

    def _outputs(self) -> int:
        return 1

    def _loss(self, output: Any, y: Array) -> Any:
        return np.mean((output[:, 0] - y) ** 2)

    def predict(self, X: Any) -> Array:  # noqa: N803
        """The number for each sample."""
        output = self._predicted(X)
        return np.asarray(self.mean_ + self.scale_ * output[:, 0])


def main() -> int:
    """Train both in a pipeline; return the exit code."""
    from sklearn.datasets import load_diabetes, load_digits
    from sklearn.model_selection import train_test_split
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    for load, network in ((load_digits, NetworkClassifier), (load_diabetes, NetworkRegressor)):
        parts = train_test_split(*load(return_X_y=True), random_state=0)
        model = make_pipeline(StandardScaler(), network(early_stopping=True, random_state=0))
        score = model.fit(parts[0], parts[2]).score(parts[1], parts[3])
        print(f"{network.__name__}: {model[-1].n_iter_} epochs, score {score:.3f} on samples it has not seen")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
