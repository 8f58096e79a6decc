"""Functions of neural networks that NumPy lacks: activations, losses, dropout, convolutions and pooling."""

from .activations import log_softmax, logsumexp, relu, sigmoid, softmax, softplus
from .convolutions import (
    Correlation,
    conv,
    cross_correlate,
    cross_correlate_back,
    cross_correlate_kernel,
    kernel_axes,
    signal_padding,
)
from .dropout import dropout
from .losses import huber, mse, one_hot, sigmoid_cross_entropy, softmax_cross_entropy
from .pooling import (
    compute_pooling_windows,
    count_elements_per_axis,
    count_window_elements,
    max_pool,
    max_pool_along,
    max_pool_back,
    mean_pool,
    mean_pool_back,
    pooled_mean,
)
from .sliding_windows import Windows

__all__ = [
    "Correlation", "Windows", "compute_pooling_windows", "conv", "count_elements_per_axis", "count_window_elements",
    "cross_correlate", "cross_correlate_back", "cross_correlate_kernel", "dropout", "huber", "kernel_axes", "log_softmax",
    "logsumexp", "max_pool", "max_pool_along", "max_pool_back", "mean_pool", "mean_pool_back", "mse", "one_hot",
    "pooled_mean", "relu", "sigmoid", "sigmoid_cross_entropy", "signal_padding", "softmax", "softmax_cross_entropy",
    "softplus",
]  # fmt: skip
