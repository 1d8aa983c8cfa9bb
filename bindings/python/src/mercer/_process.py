"""Gaussian processes."""

from sklearn.utils.validation import check_is_fitted

from ._estimator import KernelParameters
from ._regression import MultiRegressor


class MercerGaussianProcess(KernelParameters, MultiRegressor):
    """Regression with a Gaussian process: y = f(x) + m + noise, f ~ GP(0, s²k),
    noise of variance s²·alpha.

    Kernel, alpha and s are those that maximize the marginal likelihood, by
    analytic gradients, unless optimize or fit_scale is False.

    Parameters
    ----------
    kernel : str, callable or None, default=None
        "linear", "rbf", "laplacian", "poly", "sigmoid", "cosine", "chi2" or
        "precomputed", as in scikit-learn; the text of a kernel of Mercer, such as
        "matern52(sigma=2) + 0.1*linear()"; a function of two rows, which Python calls
        for each pair; or None for a Gaussian whose sigma is the median distance
        between the rows.
        The search begins at it.
    alpha : float > 0, default=0.1
        The variance of the noise relative to s²; where the search begins.
    gamma : float > 0, "scale", "auto" or None, default=None
        Of rbf, laplacian, poly, sigmoid and chi2. None and "auto" are 1/n_features
        (of chi2: 1), "scale" is 1/(n_features·X.var()).
    degree : int ≥ 1, default=3
        Of poly.
    coef0 : float ≥ 0, default=1
        Of poly and sigmoid.
    optimize : bool, default=True
        Search the kernel's parameters and alpha.
    ard : bool, default=False
        One length scale for each feature; with kernel=None.
    n_restarts_optimizer : int ≥ 0, default=2
        The number of searches that begin elsewhere.
    fit_scale : bool, default=True
        Fit s²; otherwise it is 1, as in scikit-learn.
    fit_intercept : bool, default=True
        Subtract the mean m of y; otherwise it is 0.
    random_state : int, RandomState instance or None, default=None
        The seed of random choices; None is the same one every time.
    device : str, default=None
        The processor, such as "cpu/avx2" (``about()["devices"]`` lists them); None is
        the best there is.
    threads : int, default=None
        The number of threads; None is all.
    verbose : int, default=0
        1 prints progress to stderr.

    Attributes
    ----------
    alpha_ : float
        The variance of the noise relative to s², as found.
    kernel_ : str
        The kernel, as found, as a text of Mercer.
    log_marginal_likelihood_value_ : float
        The logarithm of the marginal likelihood there.
    n_iter_ : int
        The number of evaluations.
    n_features_in_ : int
        The number of features.
    feature_names_in_ : ndarray of str
        The names of the features, where X has some.
    model_ : mercer.Model
        The fitted model; ``model_.info`` has solver, residual, memory and seconds.

    See Also
    --------
    sklearn.gaussian_process.GaussianProcessRegressor : The same model.

    Notes
    -----
    The factor of the first prediction with return_std is kept, 8·n_samples² bytes, so that
    later ones cost O(n_samples²) for each row.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import MercerGaussianProcess
    >>> X = np.linspace(0, 6, 30).reshape(-1, 1)
    >>> model = MercerGaussianProcess("gaussian(sigma=1)", alpha=1e-4, optimize=False).fit(X, np.sin(X[:, 0]))
    >>> mean, std = model.predict([[1.5], [60.0]], return_std=True)
    >>> print(f"{mean[0]:.2f} {std[0] < std[1]}")
    1.00 True
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
            "kernel": self._kernel(X), "lambda": self.alpha, "optimize": self.optimize, "ard": self.ard,
            "restarts": self.n_restarts_optimizer, "scale": self.fit_scale, "intercept": self.fit_intercept, "seed": self._seed(),
        }

    def predict(self, X, return_std=False):
        """Predicts the means, and the standard deviations.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The samples.
        return_std : bool, default=False
            Return the standard deviations too.

        Returns
        -------
        mean : ndarray of shape (n_samples,) or (n_samples, n_targets)
            The means of new targets.
        std : ndarray of shape (n_samples,) or (n_samples, n_targets)
            With return_std: their standard deviations, noise included
            (scikit-learn's are those of f, unless its kernel has a WhiteKernel).
        """
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
