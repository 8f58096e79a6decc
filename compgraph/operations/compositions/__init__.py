"""Functions of NumPy's meaning in recorded steps, for those whose own code would leave the graph on the way."""
