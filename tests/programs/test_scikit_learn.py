"""Transformers and predictors of scikit-learn's that are written in NumPy differentiate by what they are given."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from sklearn import metrics
from sklearn.cross_decomposition import PLSRegression
from sklearn.decomposition import PCA, KernelPCA, TruncatedSVD
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, Matern, WhiteKernel
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import BayesianRidge, ElasticNet, Lasso, LinearRegression, LogisticRegression, Ridge
from sklearn.mixture import GaussianMixture
from sklearn.naive_bayes import GaussianNB
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, Normalizer, PolynomialFeatures, RobustScaler, StandardScaler
from sklearn.svm import SVR

import autodiff as ad
from autodiff import numeric

Function = Callable[[Any], Any]

_rng = np.random.default_rng(0)
X = _rng.normal(size=(40, 3))
Y = np.sin(X[:, 0]) + X[:, 1]
LABELS = (Y > 0).astype(int)
AT = _rng.normal(size=(2, 3))


def _fitted(model: Any, y: Any = Y) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # few steps are enough
        return model.fit(X, y)


def _process(kernel: Any) -> Any:
    return _fitted(GaussianProcessRegressor(kernel, optimizer=None))


RIGHT: dict[str, Function] = {
    "StandardScaler": _fitted(StandardScaler()).transform,
    "StandardScaler, back": _fitted(StandardScaler()).inverse_transform,
    "MinMaxScaler": _fitted(MinMaxScaler()).transform,
    "MaxAbsScaler": _fitted(MaxAbsScaler()).transform,
    "RobustScaler": _fitted(RobustScaler()).transform,
    "Normalizer": Normalizer().transform,
    "PolynomialFeatures": _fitted(PolynomialFeatures(3)).transform,
    "PCA": _fitted(PCA(2)).transform,
    "TruncatedSVD": _fitted(TruncatedSVD(2)).transform,
    "KernelPCA": _fitted(KernelPCA(2, kernel="rbf")).transform,
    "LinearRegression": _fitted(LinearRegression()).predict,
    "Ridge": _fitted(Ridge()).predict,
    "Lasso": _fitted(Lasso(alpha=0.01)).predict,
    "ElasticNet": _fitted(ElasticNet(alpha=0.01)).predict,
    "BayesianRidge": _fitted(BayesianRidge()).predict,
    "PLSRegression": _fitted(PLSRegression(2)).predict,
    "LogisticRegression": _fitted(LogisticRegression(), LABELS).predict_proba,
    "LogisticRegression, logarithm": _fitted(LogisticRegression(), LABELS).predict_log_proba,
    "LinearDiscriminantAnalysis": _fitted(LinearDiscriminantAnalysis(), LABELS).decision_function,
    "GaussianNB": _fitted(GaussianNB(), LABELS).predict_log_proba,
    "MLPRegressor": _fitted(MLPRegressor(hidden_layer_sizes=(5,), activation="tanh", max_iter=20, random_state=0)).predict,
    "MLPClassifier": _fitted(MLPClassifier(hidden_layer_sizes=(5,), max_iter=20, random_state=0), LABELS).predict_proba,
    "GaussianProcessRegressor": _process(RBF() + WhiteKernel(0.1)).predict,
    "GaussianProcessRegressor, deviation": lambda x: _process(RBF() + WhiteKernel(0.1)).predict(x, return_std=True)[1],
    "GaussianProcessRegressor, Matern": _process(Matern(nu=2.5) + WhiteKernel(0.1)).predict,
    "KernelRidge": _fitted(KernelRidge(kernel="rbf")).predict,
    "GaussianMixture": _fitted(GaussianMixture(2, random_state=0)).score_samples,
    "a pipeline": _fitted(make_pipeline(StandardScaler(), PolynomialFeatures(2), Ridge())).predict,
    "a kernel": lambda x: metrics.pairwise.rbf_kernel(x, X),
    "a fit": lambda x: LinearRegression().fit(x, [1.0, 2.0]).coef_,
}

REFUSED: dict[str, Function] = {
    "in C": _fitted(SVR()).predict,
}


def _squared(f: Function) -> Function:
    return lambda x: np.sum(f(x) ** 2)


@pytest.mark.parametrize("name", RIGHT)
def test_derivatives_by_what_is_given(name: str) -> None:
    f = _squared(RIGHT[name])
    expected = numeric.gradient(f, [AT])[0]
    np.testing.assert_allclose(ad.grad(f)(AT), expected, rtol=1e-4, atol=1e-6)
    beside = ad.grad(lambda x: f(x) + np.sum(x))(AT)
    np.testing.assert_allclose(beside, expected + 1, rtol=1e-4, atol=1e-6)


def test_a_metric_gives_a_float() -> None:
    """scikit-learn makes a float of it, which is told."""
    with pytest.warns(RuntimeWarning, match="float"):
        ad.grad(lambda x: metrics.mean_squared_error(x, np.zeros((2, 3))) + np.sum(x))(AT)


@pytest.mark.parametrize("name", REFUSED)
def test_what_leaves_numpy_is_loud(name: str) -> None:
    with pytest.raises((TypeError, ValueError)):
        ad.grad(lambda x: _squared(REFUSED[name])(x) + np.sum(x))(AT)
