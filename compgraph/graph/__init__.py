"""Nodes, and the graph that they are: how a value is recorded, how the graph is walked, and who shares memory with whom.

Of NumPy's protocols and of derivatives nothing is known here. `context` says what holds for the code around, `hollow` keeps
numbers from those who do not ask, and `interpreter` finds the user's line.
"""
