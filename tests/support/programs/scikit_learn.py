"""Transformers and predictors of scikit-learn that are written in NumPy, fitted on first use."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
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


MODELS: dict[str, Callable[[], Function]] = {
    "StandardScaler": lambda: _fitted(StandardScaler()).transform,
    "StandardScaler, back": lambda: _fitted(StandardScaler()).inverse_transform,
    "MinMaxScaler": lambda: _fitted(MinMaxScaler()).transform,
    "MaxAbsScaler": lambda: _fitted(MaxAbsScaler()).transform,
    "RobustScaler": lambda: _fitted(RobustScaler()).transform,
    "Normalizer": lambda: Normalizer().transform,
    "PolynomialFeatures": lambda: _fitted(PolynomialFeatures(3)).transform,
    "PCA": lambda: _fitted(PCA(2)).transform,
    "TruncatedSVD": lambda: _fitted(TruncatedSVD(2)).transform,
    "KernelPCA": lambda: _fitted(KernelPCA(2, kernel="rbf")).transform,
    "LinearRegression": lambda: _fitted(LinearRegression()).predict,
    "Ridge": lambda: _fitted(Ridge()).predict,
    "Lasso": lambda: _fitted(Lasso(alpha=0.01)).predict,
    "ElasticNet": lambda: _fitted(ElasticNet(alpha=0.01)).predict,
    "BayesianRidge": lambda: _fitted(BayesianRidge()).predict,
    "PLSRegression": lambda: _fitted(PLSRegression(2)).predict,
    "LogisticRegression": lambda: _fitted(LogisticRegression(), LABELS).predict_proba,
    "LogisticRegression, logarithm": lambda: _fitted(LogisticRegression(), LABELS).predict_log_proba,
    "LinearDiscriminantAnalysis": lambda: _fitted(LinearDiscriminantAnalysis(), LABELS).decision_function,
    "GaussianNB": lambda: _fitted(GaussianNB(), LABELS).predict_log_proba,
    "MLPRegressor": lambda: (
        _fitted(MLPRegressor(hidden_layer_sizes=(5,), activation="tanh", max_iter=20, random_state=0)).predict
    ),
    "MLPClassifier": lambda: _fitted(MLPClassifier(hidden_layer_sizes=(5,), max_iter=20, random_state=0), LABELS).predict_proba,
    "GaussianProcessRegressor": lambda: _process(RBF() + WhiteKernel(0.1)).predict,
    "GaussianProcessRegressor, deviation": lambda: lambda x: _process(RBF() + WhiteKernel(0.1)).predict(x, return_std=True)[1],
    "GaussianProcessRegressor, Matern": lambda: _process(Matern(nu=2.5) + WhiteKernel(0.1)).predict,
    "KernelRidge": lambda: _fitted(KernelRidge(kernel="rbf")).predict,
    "GaussianMixture": lambda: _fitted(GaussianMixture(2, random_state=0)).score_samples,
    "a pipeline": lambda: _fitted(make_pipeline(StandardScaler(), PolynomialFeatures(2), Ridge())).predict,
    "a kernel": lambda: lambda x: metrics.pairwise.rbf_kernel(x, X),
    "a fit": lambda: lambda x: LinearRegression().fit(x, [1.0, 2.0]).coef_,
}


def in_c() -> Function:
    """Return a prediction that is computed in C."""
    function: Function = _fitted(SVR()).predict
    return function
