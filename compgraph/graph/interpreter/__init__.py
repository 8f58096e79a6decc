"""The one place that looks at Python's interpreter: the user's line, and what the instruction at work does."""
