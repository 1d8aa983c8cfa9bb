"""Converts kernels with scikit-learn's names and parameters to texts of Mercer."""

import numbers

import numpy as np
from scipy.sparse import issparse


def number(name, value):
    """value as a float. Raises a ValueError that names the argument if value is not a number."""
    if not isinstance(value, numbers.Real):
        raise ValueError(f"{name} must be a number, got {value!r}")
    return float(value)


def resolved_gamma(gamma, X, default):
    """gamma as a number: None means the default, "auto" means 1/n_features, and "scale" means
    1/(n_features·X.var())."""
    if gamma is None:
        gamma = default
    if isinstance(gamma, str):
        if gamma == "auto":
            return 1.0 / X.shape[1]
        if gamma != "scale":
            raise ValueError(f"gamma must be a number, 'scale', 'auto' or None, got {gamma!r}")
        if issparse(X):
            squares = X.multiply(X).sum(dtype=np.float64) / np.prod(X.shape)
            variance = float(squares - (X.sum(dtype=np.float64) / np.prod(X.shape)) ** 2)
        else:
            variance = float(np.var(X, dtype=np.float64))
        return 1.0 / (X.shape[1] * variance) if variance > 0 else 1.0
    if not isinstance(gamma, numbers.Real) or not 0 < gamma < np.inf:
        raise ValueError(f"gamma must be a finite number > 0, 'scale', 'auto' or None, got {gamma!r}")
    return float(gamma)


def kernel_text(kernel, gamma, degree, coef0, X):
    """The text of a kernel; None if the library chooses the kernel.

    The polynomial kernel is (gamma xᵀz + coef0)^degree = gamma^degree (xᵀz + coef0/gamma)^degree.
    """
    if kernel is None:
        return None
    if callable(kernel):  # Estimator evaluates the function and passes the library its values
        return "precomputed()"
    if not isinstance(kernel, str):
        raise ValueError(f"kernel must be a name, the text of a kernel, a function of two rows or None, got {kernel!r}")
    if "(" in kernel:
        return kernel

    def value(default="auto"):
        return resolved_gamma(gamma, X, default)

    if kernel == "linear":
        return "linear()"
    if kernel in ("rbf", "gaussian"):
        return f"gaussian(gamma={value()!r})"
    if kernel == "laplacian":
        return f"laplacian(gamma={value()!r})"
    if kernel in ("poly", "polynomial"):
        g = value()
        if not isinstance(degree, numbers.Real) or not float(degree).is_integer() or degree < 1:
            raise ValueError(f"degree must be an integer ≥ 1, got {degree!r}")
        if not 0 <= number("coef0", coef0) < np.inf:
            raise ValueError(f"coef0 must be a finite number ≥ 0 for the kernel {kernel!r}, got {coef0!r}")
        return f"{g ** int(degree)!r}*polynomial(degree={int(degree)},c={float(coef0) / g!r})"
    if kernel == "sigmoid":
        return f"sigmoid(a={value()!r},c={number('coef0', coef0)!r})"
    if kernel == "cosine":
        return "cosinesimilarity()"
    if kernel == "chi2":
        return f"chi2(gamma={value(1.0)!r})"
    if kernel == "precomputed":
        return "precomputed()"
    raise ValueError(f"there is no kernel {kernel!r}: want linear, rbf, laplacian, poly, sigmoid, cosine, chi2, precomputed, the text of a kernel such as 'matern52(sigma=2)', or None")
