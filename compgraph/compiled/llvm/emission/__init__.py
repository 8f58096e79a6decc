"""Emission of LLVM IR: from units to functions."""

from .kernel_emission import DATA_OFFSET, emit_kernel, emit_record_loop, emit_tiled_nest

__all__ = ["DATA_OFFSET", "emit_kernel", "emit_record_loop", "emit_tiled_nest"]
