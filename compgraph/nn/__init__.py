"""What networks need and NumPy lacks: activations, losses, convolutions and pooling."""
