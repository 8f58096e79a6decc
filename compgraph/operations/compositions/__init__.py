"""NumPy functions written anew in recorded steps, because NumPy's own code would lose the graph."""
