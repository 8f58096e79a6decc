"""What Python was told of values while a graph was recorded: decisions, shapes, and numbers that left the graph."""
