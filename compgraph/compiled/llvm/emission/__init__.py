"""Emission: from fused loop nests and other steps to vectorized LLVM IR."""

from .step_emission import emit_units

__all__ = ["emit_units"]
