"""Graphs that run again with other values: recorded once more, made smaller, given buffers, and written as one function."""
