"""How NumPy asks a node: ufuncs, functions, operators, methods, and functions of the user that are one node."""
