"""Gaussian processes."""

import functools
import math
import warnings

import numpy as np
import sklearn.gaussian_process
from scipy.linalg import blas, lapack
from scipy.spatial.distance import cdist
from scipy.special import xlogy
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, DotProduct, ExpSineSquared, Matern, Product, RationalQuadratic, Sum, WhiteKernel
from sklearn.utils.validation import check_is_fitted

from .._errors import MercerError, NotPositiveDefinite
from .._estimator import validate_data
from .._systems import evidence
from ._engine import Accelerated, Declined, gram, needs, numbers

# The names of the Matern kernels by nu.
_MATERN = {np.inf: "gaussian", 0.5: "exponential", 1.5: "matern32", 2.5: "matern52"}
_COMPOSED = (ConstantKernel, WhiteKernel, Sum, Product)

# For each Matern kernel with a smooth k: the factor and the text of the function h with
# ∂k/∂log l = factor·h(x, z) Σ_p (x_p − z_p)²/l².
_SLOPE = {
    "gaussian": (1.0, "gaussian(sigma=1)"),
    "matern32": (3.0, f"exponential(sigma={1 / math.sqrt(3)!r})"),
    "matern52": (5 / 3, f"matern32(sigma={math.sqrt(3 / 5)!r})"),
}


def matern(kernel):
    """The name of a Matern kernel; None if the kernel is another one that Mercer has."""
    if type(kernel) is RBF:
        return _MATERN[np.inf]
    if type(kernel) is Matern:
        needs(kernel.nu in _MATERN, "the nu of a Matern kernel")
        return _MATERN[kernel.nu]
    needs(type(kernel) in (*_COMPOSED, DotProduct, ExpSineSquared, RationalQuadratic), f"the kernel {type(kernel).__name__}")
    return None


def supported(kernel):
    """Raises Declined if Mercer does not have a kernel or its gradient."""
    if matern(kernel) is None and type(kernel) in (Sum, Product):
        supported(kernel.k1)
        supported(kernel.k2)
        needs(type(kernel) is Sum or WhiteKernel not in (type(kernel.k1), type(kernel.k2)), "a product with a WhiteKernel")


def described(kernel):
    """The text of a kernel that is no sum, product, ConstantKernel or WhiteKernel, and for each parameter
    θ of the text, in its order, the number ∂log θ/∂log of scikit-learn's parameter. The text is None for
    Matern kernels with a length for each feature, which only the Gaussian has in Mercer."""
    name = matern(kernel)
    if name:
        lengths = np.atleast_1d(kernel.length_scale).astype(np.float64)
        if kernel.anisotropic:
            sigma = "[" + ",".join(map(repr, lengths.tolist())) + "]"
            return f"gaussian(sigma={sigma})" if name == "gaussian" else None, np.ones(len(lengths))
        return f"{name}(sigma={float(lengths[0])!r})", np.ones(1)
    if type(kernel) is RationalQuadratic:
        return f"rationalquadratic(a={float(kernel.alpha)!r},sigma={float(kernel.length_scale)!r})", np.ones(2)
    if type(kernel) is ExpSineSquared:
        return f"periodic(period={float(kernel.periodicity)!r},sigma={float(kernel.length_scale)!r})", np.ones(2)
    return f"polynomial(degree=1,c={float(kernel.sigma_0) ** 2!r})", np.full(1, 2.0)


def squares(W, scaled):
    """Σ_ij W_ij (x_ip − x_jp)² = 2 (Σ_i x_ip² Σ_j W_ij − Σ_ij x_ip W_ij x_jp) for each column p, where W
    is symmetric."""
    return 2 * (W.sum(axis=1) @ scaled**2 - np.einsum("ip,ip->p", scaled, W @ scaled))


def evaluate(kernel, X, Z=None):
    """The values k(X, Z), or k(X, X) if Z is None, and a function that returns the list of
    Σ_ij M_ij ∂k(x_i, x_j)/∂θ for a symmetric matrix M and the free parameters θ of the kernel. A
    constant is a number instead of an array."""
    if type(kernel) is ConstantKernel:
        c = kernel.constant_value
        return c, lambda M: free(kernel, [c * M.sum()])
    if type(kernel) is WhiteKernel:
        level = kernel.noise_level
        return np.diag(np.full(len(X), level)) if Z is None else 0.0, lambda M: free(kernel, [level * np.trace(M)])
    if type(kernel) in (Sum, Product):
        K1, gradient1 = evaluate(kernel.k1, X, Z)
        K2, gradient2 = evaluate(kernel.k2, X, Z)
        if type(kernel) is Sum:
            return K1 + K2, lambda M: gradient1(M) + gradient2(M)
        return K1 * K2, lambda M: gradient1(M * K2) + gradient2(M * K1)
    if type(kernel) is DotProduct:
        return gram(described(kernel)[0], X, Z), lambda M: free(kernel, [2 * kernel.sigma_0**2 * M.sum()])
    if type(kernel) is ExpSineSquared:
        K = gram(described(kernel)[0], X, Z)

        def of_period(M):
            angle = 2 * np.pi / kernel.periodicity * cdist(X, X)
            return free(kernel, [-2 * xlogy(K, K).ravel() @ M.ravel(), np.sum(M * K * angle * np.sin(angle)) / kernel.length_scale**2])

        return K, of_period
    scaled = X / kernel.length_scale
    others = None if Z is None else Z / kernel.length_scale
    if type(kernel) is RationalQuadratic:
        a = float(kernel.alpha)
        K = gram(f"rationalquadratic(a={a!r},sigma=1)", scaled, others)

        def of_mixture(M):
            W = M * gram(f"rationalquadratic(a={a + 1!r},sigma={math.sqrt(a / (a + 1))!r})", scaled)
            of_length = squares(W, scaled).sum()
            return free(kernel, [xlogy(K, K).ravel() @ M.ravel() + of_length / 2, of_length])

        return K, of_mixture
    name = matern(kernel)
    K = gram(f"{name}(sigma=1)", scaled, others)

    def of_length(M):
        if kernel.hyperparameter_length_scale.fixed:
            return []
        if name == "exponential":  # ∂k/∂log l_p = k (x_p − z_p)²/(l_p² r) with r = −log k
            if not kernel.anisotropic:
                return [-xlogy(K, K).ravel() @ M.ravel()]
            W = M * K / np.where(K < 1, -np.log(np.maximum(K, np.finfo(np.float64).tiny)), np.inf)
            return [np.sum(W * np.subtract.outer(x, x) ** 2) for x in scaled.T]
        factor, text = _SLOPE[name]
        W = M * (K if name == "gaussian" else gram(text, scaled))
        each = factor * squares(W, scaled)
        return list(each) if kernel.anisotropic else [each.sum()]

    return K, of_length


def free(kernel, slopes):
    """The derivatives for the parameters of a kernel that are not fixed. slopes has one for each
    parameter, and a parameter of several lengths has one for each length."""
    slopes = iter(slopes)
    each = [(h.fixed, [next(slopes) for _ in range(h.n_elements)]) for h in kernel.hyperparameters]
    return [slope for fixed, values in each if not fixed for slope in values]


def parts(kernel):
    """The ConstantKernel, the inner kernel and the WhiteKernel of constant·inner + white, of which the
    first and the last may be None; None if the kernel has another form, or the inner kernel has no
    text."""
    found = {ConstantKernel: None, WhiteKernel: None}
    for operation, part in ((Sum, WhiteKernel), (Product, ConstantKernel)):
        if type(kernel) is operation:
            pair = [kernel.k1, kernel.k2]
            found[part] = next((k for k in pair if type(k) is part), None)
            if found[part] is None:
                return None
            kernel = pair[pair[0] is found[part]]
    if type(kernel) in _COMPOSED or described(kernel)[0] is None:
        return None
    return found[ConstantKernel], kernel, found[WhiteKernel]


def cross_text(kernel):
    """The text of a kernel of the form of parts for two sets of samples, between which a WhiteKernel is 0;
    None for other kernels."""
    if not parts(kernel):
        return None
    constant, inner, _ = parts(kernel)
    text = described(inner)[0]
    return text if constant is None else f"{float(constant.constant_value)!r}*{text}"


def slopes(kernel, of):
    """The derivatives for the free parameters of a kernel in scikit-learn's order, where of holds
    those of the parameters of each part of the kernel."""
    if type(kernel) in (Sum, Product):
        return [*slopes(kernel.k1, of), *slopes(kernel.k2, of)]
    return free(kernel, of[id(kernel)])


def evidence_of(kernel, alpha, X, y, eval_gradient):
    """The log marginal likelihood and its gradient for a kernel of the form of parts."""
    constant, inner, white = parts(kernel)
    text, powers = described(inner)
    level = 0.0 if white is None else white.noise_level
    try:
        log, found = evidence(text, 1.0 if constant is None else constant.constant_value, alpha + level, X, y, len(powers) if eval_gradient else None)
    except NotPositiveDefinite:
        return -np.inf, np.zeros_like(kernel.theta)
    if not eval_gradient:
        return log, None
    of_inner = found[1:-1] * powers
    if type(inner) is ExpSineSquared:  # scikit-learn's order is the length, the period
        of_inner = of_inner[::-1]
    of = {id(constant): found[:1], id(inner): of_inner, id(white): found[-1:] * (level / (alpha + level))}
    return log, np.array(slopes(kernel, of))


@functools.cache
def evaluated_once(cls):
    """A subclass of a kernel's class cls for a kernel of the form of parts. The first call of such a kernel
    makes its class cls again, and computes the matrix of one set of samples in Mercer."""

    def __call__(self, X, Y=None, eval_gradient=False):
        self.__class__ = cls
        if Y is not None or eval_gradient:
            return self(X, Y, eval_gradient)
        try:
            K = gram(cross_text(self), X)
        except MercerError:
            return self(X)
        white = parts(self)[2]
        if white is not None:
            K.flat[:: len(X) + 1] += white.noise_level
        return K

    return type(cls.__name__, (cls,), {"__call__": __call__, "evaluates": cls})


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

    def _constrained_optimization(self, *args):
        """scikit-learn's search. The kernel matrix of the fit, which is computed after all searches, is then
        evaluated in Mercer."""
        self.kernel_.__class__ = getattr(self.kernel_, "evaluates", type(self.kernel_))
        found = super()._constrained_optimization(*args)
        try:
            supported(self.kernel_)
            self._decline_small("fit", len(self.X_train_) ** 2)
            numbers(self.X_train_)
        except Declined:
            return found
        if parts(self.kernel_):
            self.kernel_.__class__ = evaluated_once(type(self.kernel_))
        return found

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
        C = K.copy()
        C.flat[:: len(X) + 1] += self.alpha
        # The transposes of row-major arrays are column-major for LAPACK; all of them are symmetric.
        L, info = lapack.dpotrf(C.T, lower=1, clean=0, overwrite_a=1)
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
        needs(not (return_std and return_cov), "return_std and return_cov")
        check_is_fitted(self, "X_train_")
        needs(self.kernel is None or self.kernel.requires_vector_input, "the samples are not vectors")
        supported(self.kernel_)
        X = validate_data(self, X, ensure_2d=True, dtype="numeric", reset=False)
        self._decline_small("predict", len(X) * len(self.X_train_))
        numbers(X)
        numbers(self.X_train_)
        text, targets = cross_text(self.kernel_), self.alpha_.reshape(len(self.alpha_), -1)
        if not (return_std or return_cov) and text:
            return self._unscaled(gram(text, X, self.X_train_, targets).reshape(len(X), *self.alpha_.shape[1:]))
        K = gram(text, X, self.X_train_) if text else evaluate(self.kernel_, X, self.X_train_)[0]
        needs(isinstance(K, np.ndarray), "a constant kernel")
        mean = self._unscaled(K @ self.alpha_)
        if not (return_std or return_cov):
            return mean
        numbers(self.L_, "L_")
        # The variance is k(z, z) − ‖L⁻¹k(X, z)‖², Rasmussen and Williams (2006), algorithm 2.1.
        V = blas.dtrsm(1.0, self.L_, K.T, lower=1, overwrite_b=1)
        if return_cov:
            return mean, self._of_targets(evaluate(self.kernel_, X)[0] - V.T @ V)
        variance = self.kernel_.diag(X) - np.einsum("ij,ij->j", V, V)
        if (variance < 0).any():
            warnings.warn("Predicted variances smaller than 0. Setting those variances to 0.")
            variance[variance < 0] = 0.0
        return mean, np.sqrt(self._of_targets(variance))

    def _unscaled(self, mean):
        """Means in the units of the targets, without a second dimension of length 1."""
        mean = self._y_train_std * mean + self._y_train_mean
        return np.squeeze(mean, axis=1) if mean.ndim > 1 and mean.shape[1] == 1 else mean

    def _of_targets(self, variances):
        """Variances or covariances in the squared units of the targets, with a last dimension for
        several targets."""
        square = self._y_train_std**2
        if np.size(square) == 1:
            return variances * float(square)
        return np.multiply.outer(variances, square)


sklearn_fit = sklearn.gaussian_process.GaussianProcessRegressor.fit
