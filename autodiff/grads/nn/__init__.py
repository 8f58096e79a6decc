"""Rules of what networks need: activations and losses, convolutions, pooling."""
