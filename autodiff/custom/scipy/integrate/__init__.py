"""Integrals and solutions of differential equations, differentiable in all captured nodes."""

from .boundary_value_problems import solve_bvp
from .initial_value_problems import odeint, solve_ivp
from .quadrature import dblquad, nquad, quad, quad_vec, tplquad

__all__ = ["dblquad", "nquad", "odeint", "quad", "quad_vec", "solve_bvp", "solve_ivp", "tplquad"]
