"""Sparse Jacobians and Hessians: which elements can differ from zero, and which columns are found together."""
