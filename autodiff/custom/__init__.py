"""Functions with a derivative of their own: declared, recomputed, by the implicit function theorem, by adjoint methods."""
