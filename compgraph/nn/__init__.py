"""Functions of neural networks that NumPy lacks: activations, losses, dropout, convolutions and pooling."""

from .activations import log_softmax, logsumexp, relu, sigmoid, softmax, softplus
from .convolutions import Correlation, conv, cross_correlate, cross_correlate_back, cross_correlate_kernel, pads_of_signal, places
from .dropout import dropout
from .losses import huber, mse, one_hot, sigmoid_cross_entropy, softmax_cross_entropy
from .pooling import covered, max_pool, max_pool_along, max_pool_back, mean_pool, mean_pool_back, pooled_mean, sizes, windows_of
from .sliding_windows import Windows

__all__ = [
    "Correlation", "Windows", "conv", "covered", "cross_correlate", "cross_correlate_back", "cross_correlate_kernel",
    "dropout", "huber", "log_softmax", "logsumexp", "max_pool", "max_pool_along", "max_pool_back", "mean_pool",
    "mean_pool_back", "mse", "one_hot", "pads_of_signal", "places", "pooled_mean", "relu", "sigmoid",
    "sigmoid_cross_entropy", "sizes", "softmax", "softmax_cross_entropy", "softplus", "windows_of",
]  # fmt: skip
