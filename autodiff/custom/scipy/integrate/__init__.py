"""Integrals and solutions of differential equations, differentiable in all captured nodes."""
