"""Arrays made for nodes: variables, constants and placeholders, arrays to be filled, and what NumPy makes of lists of nodes."""
