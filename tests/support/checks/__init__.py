"""Checks of a case: one module for each transform, and their table."""
