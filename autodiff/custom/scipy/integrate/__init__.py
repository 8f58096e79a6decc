"""Integrals and solutions of differential equations, differentiable in all that the user's function brings."""

from .quadrature import dblquad, nquad, quad, quad_vec, tplquad

__all__ = ["dblquad", "nquad", "quad", "quad_vec", "tplquad"]
