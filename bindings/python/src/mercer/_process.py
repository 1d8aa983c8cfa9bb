"""Gaussian processes."""

from sklearn.utils.validation import check_is_fitted

from ._estimator import KernelParameters
from ._regression import MultiRegressor


class MercerGaussianProcess(KernelParameters, MultiRegressor):
    """Regression with a Gaussian process: y = f(x) + m + noise, f ~ GP(0, s²k),
    noise of variance s²·alpha.

    Kernel, alpha and s are those that maximise the marginal likelihood, by
    analytic gradients, unless told otherwise.

    Parameters
    ----------
    alpha : float > 0, default 0.1
        Variance of the noise relative to s²; where the search begins.
    kernel : str, default None
        As in MercerKernelRidge; where the search begins. None is a Gaussian of
        the median distance.
    optimize : bool, default True
        Search the kernel's parameters and alpha.
    ard : bool, default False
        One length scale for each feature; with kernel None.
    n_restarts_optimizer : int, default 2
    fit_scale : bool, default True
        Fit s²; otherwise it is 1, as in scikit-learn.
    fit_intercept : bool, default True
        Subtract the mean m of y.
    gamma, degree, coef0, random_state, device, threads, verbose : see
        MercerKernelRidge

    Attributes
    ----------
    alpha_, kernel_ : as found
    log_marginal_likelihood_value_ : float
    model_ : mercer.Model
    """

    def __init__(self, kernel=None, *, alpha=0.1, gamma=None, degree=3, coef0=1, optimize=True, ard=False, n_restarts_optimizer=2,
                 fit_scale=True, fit_intercept=True, random_state=None, device=None, threads=None, verbose=0):
        self.kernel = kernel
        self.alpha = alpha
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.optimize = optimize
        self.ard = ard
        self.n_restarts_optimizer = n_restarts_optimizer
        self.fit_scale = fit_scale
        self.fit_intercept = fit_intercept
        self.random_state = random_state
        self.device = device
        self.threads = threads
        self.verbose = verbose

    def _learner(self):
        return "gaussian-process", "regression"

    def _parameters(self, X):
        return {
            "kernel": self._kernel(X), "lambda": self.alpha, "optimise": self.optimize, "ard": self.ard,
            "restarts": self.n_restarts_optimizer, "scale": self.fit_scale, "intercept": self.fit_intercept, "seed": self._seed(),
        }

    def predict(self, X, return_std=False):
        """The means and, with return_std, a pair of them and of the standard
        deviations of new targets, noise included (scikit-learn's are those of f,
        unless its kernel has a WhiteKernel)."""
        mean = super().predict(X)
        return (mean, self._shaped(self._predict_model(X, "deviations"))) if return_std else mean

    @property
    def alpha_(self):
        check_is_fitted(self, "model_")
        return self.model_.info["parameters"]["lambda"]

    @property
    def log_marginal_likelihood_value_(self):
        check_is_fitted(self, "model_")
        return float(self.model_.array("evidence")[0, 0])
