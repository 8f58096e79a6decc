"""In-place writes into nodes with NumPy's meaning. All of NumPy's forms call one function, `stores.store`."""

from . import numpy_writes
from .buffer_methods import as_traced, contains_node
from .flatiter import Flat
from .numpy_writes import copyto, fill_diagonal, nan_to_num, place, put, put_along_axis, putmask, ufunc_at
from .out_arguments import write_out, write_where
from .stores import backing_array, mark_copied_row, require_writeable, store, store_plain

__all__ = [
    "Flat", "as_traced", "backing_array", "contains_node", "copyto", "fill_diagonal", "mark_copied_row", "nan_to_num",
    "numpy_writes", "place", "put", "put_along_axis", "putmask", "require_writeable", "store", "store_plain", "ufunc_at",
    "write_out", "write_where",
]  # fmt: skip
