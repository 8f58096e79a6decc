"""What functions are given and give back: nested arguments, which of them are differentiated, and what they must be."""
