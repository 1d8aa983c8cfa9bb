"""Gaussian processes."""

import numpy as np
import sklearn.gaussian_process
from scipy.linalg import lapack
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Matern, Product, Sum, WhiteKernel
from sklearn.utils.validation import check_is_fitted

from .._errors import NotPositiveDefinite
from .._estimator import validate_data
from .._systems import evidence
from ._engine import Accelerated, Declined, gram, needs, numbers

# For each Matern kernel: its text, and the factor and the text of the function h with
# ∂k/∂log l = h(x, z) Σ_p (x_p − z_p)²/l².
_RADIAL = {
    np.inf: ("gaussian(sigma=1)", 1.0, "gaussian(sigma=1)"),
    1.5: ("matern32(sigma=1)", 3.0, f"exponential(sigma={1 / np.sqrt(3)!r})"),
    2.5: ("matern52(sigma=1)", 5 / 3, f"matern32(sigma={np.sqrt(3 / 5)!r})"),
}


def radial(kernel):
    """The entry of _RADIAL of a kernel, None if the kernel is a sum or product."""
    if type(kernel) is RBF:
        return _RADIAL[np.inf]
    if type(kernel) is Matern:
        needs(kernel.nu in _RADIAL, "the nu of a Matern kernel")
        return _RADIAL[kernel.nu]
    needs(type(kernel) in (ConstantKernel, WhiteKernel, Sum, Product), f"the kernel {type(kernel).__name__}")
    return None


def supported(kernel):
    """Raises Declined if Mercer does not have a kernel or its gradient."""
    if radial(kernel) is None and type(kernel) in (Sum, Product):
        supported(kernel.k1)
        supported(kernel.k2)
        needs(type(kernel) is Sum or WhiteKernel not in (type(kernel.k1), type(kernel.k2)), "a product with a WhiteKernel")


def evaluate(kernel, X, Z=None):
    """The values k(X, Z), or k(X, X) if Z is None, and a function that returns the list of
    Σ_ij M_ij ∂k(x_i, x_j)/∂θ for a symmetric matrix M and the parameters θ of the kernel. A
    constant is a number instead of an array."""
    if type(kernel) is ConstantKernel:
        c = kernel.constant_value
        return c, lambda M: [] if kernel.hyperparameter_constant_value.fixed else [c * M.sum()]
    if type(kernel) is WhiteKernel:
        level = kernel.noise_level
        return np.diag(np.full(len(X), level)) if Z is None else 0.0, lambda M: [] if kernel.hyperparameter_noise_level.fixed else [level * np.trace(M)]
    if type(kernel) in (Sum, Product):
        K1, gradient1 = evaluate(kernel.k1, X, Z)
        K2, gradient2 = evaluate(kernel.k2, X, Z)
        if type(kernel) is Sum:
            return K1 + K2, lambda M: gradient1(M) + gradient2(M)
        return K1 * K2, lambda M: gradient1(M * K2) + gradient2(M * K1)
    text, factor, slope = radial(kernel)
    scaled = X / kernel.length_scale
    K = gram(text, scaled, None if Z is None else Z / kernel.length_scale)

    def gradient(M):
        if kernel.hyperparameter_length_scale.fixed:
            return []
        # Σ_ij W_ij (x_ip − x_jp)² = 2 (Σ_i x_ip² Σ_j W_ij − Σ_ij x_ip W_ij x_jp) for each p.
        W = M * (K if slope == text else gram(slope, scaled))
        each = 2 * factor * (W.sum(axis=1) @ scaled**2 - np.einsum("ip,ip->p", scaled, W @ scaled))
        return list(each) if kernel.anisotropic else [each.sum()]

    return K, gradient


def parts(kernel):
    """The ConstantKernel, the radial kernel and the WhiteKernel of constant·radial + white, of which the
    first and the last may be None; None if the kernel has another form, or a length for each feature
    that Mercer does not have."""
    found = {ConstantKernel: None, WhiteKernel: None}
    for operation, part in ((Sum, WhiteKernel), (Product, ConstantKernel)):
        if type(kernel) is operation:
            pair = [kernel.k1, kernel.k2]
            found[part] = next((k for k in pair if type(k) is part), None)
            if found[part] is None:
                return None
            kernel = pair[pair[0] is found[part]]
    if radial(kernel) is None or kernel.anisotropic and radial(kernel)[1] != 1:
        return None
    return found[ConstantKernel], kernel, found[WhiteKernel]


def slopes(kernel, of):
    """The derivatives for the free parameters of a kernel in scikit-learn's order, where of holds
    those of the parameter of each part of the kernel."""
    if type(kernel) in (Sum, Product):
        return [*slopes(kernel.k1, of), *slopes(kernel.k2, of)]
    return [] if kernel.hyperparameters[0].fixed else list(of[id(kernel)])


def evidence_of(kernel, alpha, X, y, eval_gradient):
    """The log marginal likelihood and its gradient for a kernel of the form of parts."""
    constant, inner, white = parts(kernel)
    lengths = np.atleast_1d(inner.length_scale).astype(np.float64)
    text = radial(inner)[0].replace("1)", repr(lengths.tolist() if inner.anisotropic else float(lengths[0])).replace(" ", "") + ")")
    level = 0.0 if white is None else white.noise_level
    try:
        log, found = evidence(text, 1.0 if constant is None else constant.constant_value, alpha + level, X, y, len(lengths) if eval_gradient else None)
    except NotPositiveDefinite:
        return -np.inf, np.zeros_like(kernel.theta)
    if not eval_gradient:
        return log, None
    of = {id(constant): found[:1], id(inner): found[1:-1], id(white): found[-1:] * (level / (alpha + level))}
    return log, np.array(slopes(kernel, of))


class GaussianProcessRegressor(Accelerated, sklearn.gaussian_process.GaussianProcessRegressor):
    _hooks = {"fit": "fit", "log_marginal_likelihood": "log_marginal_likelihood", "predict": "predict"}
    _smallest = {"fit": 300 * 300, "log_marginal_likelihood": 300 * 300, "predict": 50_000}

    def _mercer_fit(self, X, y):
        """scikit-learn's fit, whose search evaluates the likelihood in Mercer."""
        needs(self.kernel is None or self.kernel.requires_vector_input, "the samples are not vectors")
        if self.kernel is not None:
            supported(self.kernel)
        self._decline_small("fit", len(X) ** 2)
        return sklearn_fit(self, X, y)

    def _mercer_log_marginal_likelihood(self, theta=None, eval_gradient=False, clone_kernel=True):
        needs(theta is not None, "theta=None")
        supported(self.kernel_)
        X, y = self.X_train_, self.y_train_.reshape(len(self.y_train_), -1)
        self._decline_small("log_marginal_likelihood", len(X) ** 2)
        numbers(X)
        numbers(y, "y")
        kernel = self.kernel_.clone_with_theta(theta)
        if not clone_kernel:
            self.kernel_.theta = theta
        if parts(kernel) and np.ndim(self.alpha) == 0 and self.alpha > 0:
            found = evidence_of(kernel, self.alpha, X, y.astype(np.float64), eval_gradient)
            return found if eval_gradient else found[0]
        K, gradient = evaluate(kernel, X)
        needs(isinstance(K, np.ndarray), "a constant kernel")
        K.flat[:: len(X) + 1] += self.alpha
        # The transposes of row-major arrays are column-major for LAPACK; all of them are symmetric.
        L, info = lapack.dpotrf(K.T, lower=1, clean=0, overwrite_a=0)
        if info:
            return (-np.inf, np.zeros_like(theta)) if eval_gradient else -np.inf
        a = lapack.dpotrs(L, y.astype(np.float64), lower=1)[0]
        n, t = y.shape
        likelihood = -0.5 * np.einsum("ik,ik", y, a) - t * (np.log(np.diag(L)).sum() + n / 2 * np.log(2 * np.pi))
        if not eval_gradient:
            return likelihood
        inverse, info = lapack.dpotri(L, lower=1, overwrite_c=1)
        if info:
            raise Declined("a singular kernel matrix")
        # ½ tr((Σ_k a_k a_kᵀ − t K⁻¹) ∂K/∂θ), Rasmussen and Williams (2006), equation 5.9
        inverse = np.tril(inverse)
        inverse += np.tril(inverse, -1).T
        return likelihood, 0.5 * np.array(gradient(a @ a.T - t * inverse))

    def _mercer_predict(self, X, return_std=False, return_cov=False):
        needs(not return_std, "return_std=True")
        needs(not return_cov, "return_cov=True")
        check_is_fitted(self, "X_train_")
        needs(self.kernel is None or self.kernel.requires_vector_input, "the samples are not vectors")
        supported(self.kernel_)
        X = validate_data(self, X, ensure_2d=True, dtype="numeric", reset=False)
        self._decline_small("predict", len(X) * len(self.X_train_))
        numbers(X)
        numbers(self.X_train_)
        a = self.alpha_.reshape(len(self.alpha_), -1)
        scale, kernel = 1.0, self.kernel_
        if type(kernel) is Sum and type(kernel.k2) is WhiteKernel:  # which is 0 for new samples
            kernel = kernel.k1
        if type(kernel) is Product and type(kernel.k1) is ConstantKernel:
            scale, kernel = kernel.k1.constant_value, kernel.k2
        if radial(kernel):
            mean = scale * gram(radial(kernel)[0], X / kernel.length_scale, self.X_train_ / kernel.length_scale, a)
        else:
            mean = scale * evaluate(kernel, X, self.X_train_)[0] @ a
        mean = self._y_train_std * mean.reshape(len(X), *self.alpha_.shape[1:]) + self._y_train_mean
        return np.squeeze(mean, axis=1) if mean.ndim > 1 and mean.shape[1] == 1 else mean


sklearn_fit = sklearn.gaussian_process.GaussianProcessRegressor.fit
