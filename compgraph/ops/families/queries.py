"""Functions that are not recorded: plain results, and functions of dates."""

from __future__ import annotations

import numpy as np

from ..spec import OpSpec, plain, unsupported

OPERATIONS: tuple[OpSpec, ...] = (
    # shapes and dtypes
    plain(np.shape, reads="shapes", is_guarded=True),
    plain(np.ndim, reads="types"),
    plain(np.size, reads="shapes", is_guarded=True),
    plain(np.result_type, reads="types"),
    plain(np.can_cast, reads="types"),
    plain(np.common_type, reads="types"),
    plain(np.min_scalar_type),
    plain(np.iscomplexobj, reads="types"),
    plain(np.isrealobj, reads="types"),
    # comparisons of whole arrays
    plain(np.allclose, is_guarded=True),
    plain(np.array_equal, is_guarded=True),
    plain(np.array_equiv, is_guarded=True),
    plain(np.may_share_memory, reads="memory"),
    plain(np.shares_memory, reads="memory"),
    # indices
    plain(np.ix_),
    plain(np.diag_indices_from, reads="shapes", returns_indices=True),
    plain(np.tril_indices_from, reads="shapes", returns_indices=True),
    plain(np.triu_indices_from, reads="shapes", returns_indices=True),
    plain(np.ravel_multi_index),
    # text and files
    plain(np.array2string, external="print options"),
    plain(np.array_repr, external="print options"),
    plain(np.array_str, external="print options"),
    plain(np.save, external="files"),
    plain(np.savetxt, external="files"),
    plain(np.savez, external="files"),
    plain(np.savez_compressed, external="files"),
    plain(np.einsum_path, reads="shapes"),
    # dates
    unsupported(np.is_busday, "plain arrays of dates, which nodes cannot hold"),
    unsupported(np.busday_count, "plain arrays of dates, which nodes cannot hold"),
    unsupported(np.busday_offset, "plain arrays of dates, which nodes cannot hold"),
    unsupported(np.datetime_as_string, "plain arrays of dates, which nodes cannot hold"),
)
