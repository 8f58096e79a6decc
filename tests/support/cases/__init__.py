"""Cases of every operation, by family.

The tables are built when the first case is needed, and not when tests are collected.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from tests.support.package_rules import RULES

if TYPE_CHECKING:
    from tests.support.arguments import Case

# Functions that record other operations, and have no rule of their own.
COMPOSED = [
    "apply_along_axis", "apply_over_axes", "arccos_cut", "arccosh_cut", "arcsin_cut", "arcsinh_cut", "arctanh_cut",
    "average", "block", "choose", "compress", "concat", "corrcoef", "cov", "diff", "emath_arccos", "emath_arcsin",
    "emath_arctanh", "emath_log", "emath_log10", "emath_log2", "emath_power", "emath_sqrt", "extract", "flip", "fliplr",
    "flipud", "gradient", "histogram2d", "huber", "intersect1d", "irfft2", "linalg.cross", "linalg.diagonal", "linalg.trace",
    "logspace", "matrix_norm", "meshgrid", "mse", "pad_values", "piecewise", "polyadd", "polyfit", "polysub", "real_if_close",
    "resize", "rfft2", "rot90", "select", "setdiff1d", "setxor1d", "sort_complex", "svdvals", "trapezoid", "tril",
    "trim_zeros", "triu", "union1d", "unique", "unique_all", "unique_counts", "unique_inverse", "unique_values", "vander",
    "vector_norm",
]  # fmt: skip

# Rules of operations that only this package records. Their tests are named.
INTERNAL = {
    "scatter", "input", "output", "diagonal_matrix", "window", "scatter_to_buffer", "scatter_add", "over", "cornered",
    "limit_value", "without_slope",
}  # fmt: skip
INTERNAL |= {"zero_to_order"}  # tests/autodiff/grads/test_exactness.py
INTERNAL |= {"stacked_matmul"}  # batched products, tests/support/checks/batching.py

# SciPy computes these too coarsely for differences: tests/autodiff/grads/test_special_functions.py.
COARSE = [
    "special_bdtr", "special_bdtrc", "special_bdtri", "special_chndtrinc", "special_mathieu_cem",
    "special_mathieu_modcem1", "special_mathieu_modcem2", "special_mathieu_modsem1", "special_mathieu_modsem2",
    "special_mathieu_sem", "special_modfresnelm", "special_modfresnelp", "special_obl_ang1", "special_obl_ang1_cv",
    "special_obl_rad1", "special_obl_rad1_cv", "special_pro_ang1", "special_pro_ang1_cv", "special_pro_rad1",
    "special_pro_rad1_cv",
]  # fmt: skip

OPERATIONS = sorted({*RULES, *COMPOSED} - INTERNAL - {*COARSE})


@cache
def _by_operation() -> dict[str, list[Case]]:
    from tests.support.cases.tables import CASES, COMPLEX_CASES, COMPOSED_CASES

    groups: dict[str, list[Case]] = {}
    for case in (*CASES, *COMPLEX_CASES, *COMPOSED_CASES):
        groups.setdefault(case.opname, []).append(case)
    return {operation: sorted(cases, key=_order) for operation, cases in groups.items()}


def _order(case: Case) -> tuple[int, int]:
    """Sort by kind; within a kind arguments that broadcast come first, and numbers and zero sizes last."""
    shapes = {x.shape for x in case.args}
    is_degenerate = shapes == {()} or any(0 in shape for shape in shapes)
    return ("real", "complex", "composed").index(case.kind), 2 if is_degenerate else int(len(shapes) == 1)


def cases_of(operation: str) -> list[Case]:
    """Return the cases of an operation: with real arguments, with complex ones, composed.

    The first of each kind, which every run checks by all transforms, is the most telling one.
    """
    return _by_operation()[operation]
