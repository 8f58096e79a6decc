"""Operators on functions: a function of arrays becomes one that returns its derivatives."""
