"""Functions whose result is not part of the graph, and functions of dates, which raise."""

from __future__ import annotations

import numpy as np

from ..spec import OpSpec, plain, refused

OPERATIONS: tuple[OpSpec, ...] = (
    # shapes and dtypes
    plain(np.shape),
    plain(np.ndim),
    plain(np.size),
    plain(np.result_type),
    plain(np.can_cast),
    plain(np.common_type),
    plain(np.min_scalar_type),
    plain(np.iscomplexobj),
    plain(np.isrealobj),
    # comparisons of whole arrays
    plain(np.allclose),
    plain(np.array_equal),
    plain(np.array_equiv),
    plain(np.may_share_memory),
    plain(np.shares_memory),
    # indices
    plain(np.ix_),
    plain(np.diag_indices_from, gives_indices=True),
    plain(np.tril_indices_from, gives_indices=True),
    plain(np.triu_indices_from, gives_indices=True),
    plain(np.ravel_multi_index),
    # text and files
    plain(np.array2string, is_pure=False),
    plain(np.array_repr, is_pure=False),
    plain(np.array_str, is_pure=False),
    plain(np.save, is_pure=False),
    plain(np.savetxt, is_pure=False),
    plain(np.savez, is_pure=False),
    plain(np.savez_compressed, is_pure=False),
    plain(np.einsum_path),
    # dates
    refused(np.is_busday, "plain arrays of dates, which nodes cannot hold"),
    refused(np.busday_count, "plain arrays of dates, which nodes cannot hold"),
    refused(np.busday_offset, "plain arrays of dates, which nodes cannot hold"),
    refused(np.datetime_as_string, "plain arrays of dates, which nodes cannot hold"),
)
