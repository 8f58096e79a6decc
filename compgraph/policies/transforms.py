"""Fourier transforms, polynomials, special functions and the rest of the ufuncs."""

from __future__ import annotations

from .policy import Policy

POLICY = Policy()
