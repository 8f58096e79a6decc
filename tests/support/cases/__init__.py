"""Cases of every operation, by family."""
