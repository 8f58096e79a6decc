"""Programs with labelled arrays of pandas and xarray."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

TABLE = pd.DataFrame({"a": [1.0, 2.0, 3.0], "b": [0.5, 0.2, 0.1]})
S = TABLE["a"]
A = xr.DataArray([1.0, 2.0, 4.0], dims="t")

LABELLED: dict[str, Callable[[Any], Any]] = {
    "node * series": lambda x: (x * S).sum(),
    "series * node": lambda x: np.sum(S * x**2),
    "values": lambda x: np.sum(x**2 * TABLE["a"].values),
    "to_numpy": lambda x: np.sum((TABLE.to_numpy().T @ x) ** 2),
    "table @ node": lambda x: np.sum(TABLE.T @ x**2),
    "node @ table": lambda x: (x**2 @ TABLE).sum(),
    "dot": lambda x: S.dot(x) * np.dot(S, x),
    "a function": lambda x: np.exp(0.1 * S + x).sum(),
    "a series of nodes": lambda x: (pd.Series(x) ** 2).mean(),
    "a column of nodes": lambda x: (TABLE.assign(c=x**2)["c"] * 2).sum(),
    "groups": lambda x: (pd.Series(x).groupby([0, 0, 1]).sum() ** 2).sum(),
    "a mask": lambda x: np.sum(x[S > 1] ** 2),
    "where": lambda x: np.where(S > 1, x, 0).sum(),
    "rows": lambda x: sum(row["a"] * x[k] ** 2 for k, row in TABLE.iterrows()),
    "tuples": lambda x: sum(row.b * x[k] ** 2 for k, row in enumerate(TABLE.itertuples())),
    "a misfit": lambda x: ((TABLE["b"] - x * TABLE["a"]) ** 2).mean(),
    "interp": lambda x: np.interp(x + 0.1, TABLE["a"], TABLE["b"]).sum(),
    "node * labelled": lambda x: (x**2 * A).sum(),
    "labelled * node": lambda x: np.sum(A * x**2),
    "labelled nodes": lambda x: np.exp(xr.DataArray(0.1 * x, dims="t")).mean(),
    "dot of labelled": lambda x: xr.DataArray(x**2, dims="t").dot(A),
    "numbers of labelled": lambda x: np.sum(A.values * x**2),
}
