"""Regression."""

import numpy as np
from sklearn.base import MultiOutputMixin, RegressorMixin
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from ._estimator import ORDER, Estimator, KernelParameters, samples


def target_names(y):
    """The names that a Series or DataFrame of targets has, where they are texts."""
    columns = getattr(y, "columns", None)
    names = [getattr(y, "name", None)] if columns is None else list(columns)
    return names if all(isinstance(n, str) and n for n in names) else None


def _has_intervals(estimator):
    """Whether predict_interval is to be there."""
    model = getattr(estimator, "model_", None)
    if model is None:
        knows = estimator._learner()[0] == "kernel-ridge" or getattr(estimator, "intervals", False)
    else:
        knows = "intervals" in model.info["capabilities"]
    if not knows:
        name = type(estimator).__name__
        raise AttributeError(f"{name} has no prediction intervals" + (": set intervals=True and fit again, or" if hasattr(estimator, "intervals") else ":") +
                             " call calibrate(X, y) with samples that fit has not seen")
    return True


class Regressor(RegressorMixin, Estimator):
    """The base of the estimators of regression with one target."""

    def fit(self, X, y, sample_weight=None):
        """Fits the model.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The samples; of a precomputed kernel its (n_samples, n_samples) values.
            Arrays of float64 whose rows are contiguous are not copied.
        y : array-like of shape (n_samples,) or (n_samples, n_targets)
            The targets. Several are for the estimators that take them.
        sample_weight : array-like of shape (n_samples,), default=None
            Numbers ≥ 0, None being all 1. A sample of weight 0 is left out.

        Returns
        -------
        self : object

        Raises
        ------
        ValueError
            For data or parameters that are out of range; the text names them.
        mercer.OutOfMemory
            Before the work, where it does not fit into the memory.
        mercer.NotPositiveDefinite
            Where K + alpha I is singular or indefinite; the text says what to raise.
        mercer.NotConverged
            Where the residual tol is not reached.
        mercer.DeviceUnavailable
            Where this machine lacks the device.
        """
        names = target_names(y)
        X, y = samples(self, X, y, multi_output=self._multioutput, y_numeric=True)
        self._flat = y.ndim == 1
        y = np.asarray(y, dtype=np.float64)
        self._targets = 1 if self._flat else y.shape[1]
        return self._fit_model(X, y.reshape(len(y), -1), self._weights(sample_weight, X), targets=names)

    def predict(self, X):
        """Predicts the targets.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The samples; of a precomputed kernel its values with the samples of fit.

        Returns
        -------
        y : ndarray of shape (n_samples,) or (n_samples, n_targets)
            The predictions, of the shape that y had in fit.
        """
        return self._shaped(self._predict_model(X))

    def calibrate(self, X, y):
        """Makes split-conformal prediction intervals for predict_interval.

        The bounds are the prediction ± a quantile of the errors |y − f(X)| here (Lei,
        G'Sell, Rinaldo, Tibshirani and Wasserman 2018, algorithm 2). They are saved and
        pickled with the model; another fit forgets them.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Samples that were not in the fit; of a precomputed kernel its values with
            the samples of fit.
        y : array-like of shape (n_samples,) or (n_samples, n_targets)
            Their targets.

        Returns
        -------
        self : object

        Examples
        --------
        >>> import numpy as np
        >>> from mercer import MercerSVR
        >>> X = np.linspace(0, 6, 80).reshape(-1, 1)
        >>> y = np.sin(X[:, 0]) + 0.1 * np.cos(50 * X[:, 0])
        >>> model = MercerSVR(C=10).fit(X[::2], y[::2]).calibrate(X[1::2], y[1::2])
        >>> lower, upper = model.predict_interval(X, level=0.9)
        >>> bool(np.mean((lower <= y) & (y <= upper)) > 0.85)
        True
        """
        return self._calibrate(X, y, multi_output=self._multioutput, y_numeric=True,
                               targets=lambda y: np.asarray(y, dtype=np.float64).reshape(len(y), -1))

    @available_if(_has_intervals)
    def predict_interval(self, X, level=0.9):
        """Prediction intervals that assume no distribution of the noise.

        Of MercerKernelRidge and of MercerRidge with intervals=True they are those of
        the jackknife+ (Barber, Candès, Ramdas and Tibshirani 2021) in closed form,
        without the n refits that it asks for. After calibrate, and of a model that
        `mercer fit --calibrate` made, they are split-conformal, of every estimator.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The samples.
        level : float, default=0.9
            The part of new targets that the intervals are to contain, from 0.5 to
            n/(n + 1) for n samples in the fit. They contain about as many in practice
            and 2·level − 1 at least, whatever the noise, if new samples and those of
            the fit are drawn alike. After calibrate with m samples the level is up to
            m/(m + 1), and they contain level at least, and level + 1/(m + 1) at most.

        Returns
        -------
        lower : ndarray of shape (n_samples,) or (n_samples, n_targets)
            The lower bounds.
        upper : ndarray of shape (n_samples,) or (n_samples, n_targets)
            The upper bounds.

        Raises
        ------
        ValueError
            For a level out of range, and for alpha = 0 of MercerKernelRidge.
        """
        bounds = self._predict_model(X, "intervals", level)
        half = bounds.shape[1] // 2
        return self._shaped(bounds[:, :half]), self._shaped(bounds[:, half:])

    def _shaped(self, f):
        return f[:, 0] if self._flat else f

    def _restore(self, model):
        self._flat = model.info["outputs"] == 1
        return super()._restore(model)


class MultiRegressor(MultiOutputMixin, Regressor):
    """The base of those with several targets."""

    _multioutput = True


def penalties(alpha, targets):
    """The parameters of the library for alpha: a number, or an array with one for
    each of so many targets."""
    if np.ndim(alpha) == 0:
        return {"lambda": alpha}
    alpha = np.asarray(alpha, dtype=np.float64)
    if alpha.size == 1:
        return {"lambda": float(alpha.reshape(-1)[0])}
    if alpha.shape != (targets,):
        raise ValueError(f"alpha has the shape {alpha.shape}: it must be a number, or one for each target, of which there are {targets}")
    return {"lambdas": ",".join(repr(float(a)) for a in alpha)}


class MercerRidge(MultiRegressor):
    """Ridge regression: the minimum of ‖y − Xw − b‖² + alpha ‖w‖².

    Parameters
    ----------
    alpha : float ≥ 0 or array-like of shape (n_targets,), default=1.0
        The penalty; an array has one for each target.
    fit_intercept : bool, default=True
        Fit an unpenalized b.
    solver : {"auto", "primal", "dual"}, default="auto"
        How the system is solved: d×d, n×n, or the cheaper of them.
    intervals : bool, default=False
        Keep a copy of the samples in the model, for predict_interval.
    device : str, default=None
        The processor, such as "cpu/avx2" (``about()["devices"]`` lists them); None is
        the best there is.
    threads : int, default=None
        The number of threads; None is all.
    verbose : int, default=0
        1 prints progress to stderr.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,) or (n_targets, n_features)
        The weights w.
    intercept_ : float or ndarray of shape (n_targets,)
        The intercepts b.
    n_iter_ : int
        1.
    n_features_in_ : int
        The number of features.
    feature_names_in_ : ndarray of str
        The names of the features, where X has some.
    model_ : mercer.Model
        The fitted model; ``model_.info`` has solver, residual, memory and seconds.

    See Also
    --------
    sklearn.linear_model.Ridge : The same minimum.
    MercerKernelRidge : With a kernel.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import MercerRidge
    >>> X = np.arange(8.0).reshape(-1, 1)
    >>> model = MercerRidge(alpha=0).fit(X, 1 + 2 * X[:, 0])
    >>> print(f"{model.coef_[0]:.2f} {model.intercept_:.2f}")
    2.00 1.00
    """

    def __init__(self, alpha=1.0, *, fit_intercept=True, solver="auto", intervals=False, device=None, threads=None, verbose=0):
        self.alpha = alpha
        self.fit_intercept = fit_intercept
        self.solver = solver
        self.intervals = intervals
        self.device = device
        self.threads = threads
        self.verbose = verbose

    def _learner(self):
        return "ridge", "regression"

    def _parameters(self, X):
        return {**penalties(self.alpha, self._targets), "intercept": self.fit_intercept, "solver": self.solver, "intervals": self.intervals}

    @property
    def coef_(self):
        check_is_fitted(self, "model_")
        return self._shaped(self.model_.array("coef")).T

    @property
    def intercept_(self):
        check_is_fitted(self, "model_")
        b = self.model_.array("intercept")[0]
        return float(b[0]) if self._flat else b


class MercerKernelRidge(KernelParameters, MultiRegressor):
    """Kernel ridge regression: f(x) = Σ a_i k(x_i, x) + b with
    (K + alpha W⁻¹)a + b = y, W being the sample weights.

    With the same parameters it predicts what scikit-learn's KernelRidge does.

    Parameters
    ----------
    alpha : float ≥ 0 or array-like of shape (n_targets,), default=1.0
        The penalty; an array has one for each target. Targets with the same one share
        a factorization, and many different ones a decomposition.
    kernel : str, callable or None, default="linear"
        "linear", "rbf", "laplacian", "poly", "sigmoid", "cosine", "chi2" or
        "precomputed", as in scikit-learn; the text of a kernel of Mercer, such as
        "matern52(sigma=2) + 0.1*linear()"; a function of two rows, which Python calls
        for each pair; or None for a Gaussian whose sigma is half the median
        distance between the rows.
    gamma : float > 0, "scale", "auto" or None, default=None
        Of rbf, laplacian, poly, sigmoid and chi2. None and "auto" are 1/n_features
        (of chi2: 1), "scale" is 1/(n_features·X.var()).
    degree : int ≥ 1, default=3
        Of poly.
    coef0 : float ≥ 0, default=1
        Of poly and sigmoid.
    fit_intercept : bool, default=False
        Fit an unpenalized b.
    solver : {"auto", "dual", "mixed", "cg"}, default="auto"
        How the system is solved: by a Cholesky factor in float64, by one in float32
        that is refined, by preconditioned conjugate gradients, or by the one with the
        lowest modeled time that fits the memory.
    tol : float, default=1e-8
        The relative residual ‖(K + alpha W⁻¹)a + b − y‖ / ‖y‖ that is reached, or
        the fit fails.
    max_iter : int, default=10000
        The maximum of products with K of an iterative solver.
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
    dual_coef_ : ndarray of shape (n_samples,) or (n_samples, n_targets)
        The coefficients a, of the samples of weight > 0.
    X_fit_ : ndarray of shape (n_samples, n_features)
        The samples of weight > 0.
    kernel_ : str
        The kernel that was fitted with, as a text of Mercer.
    n_iter_ : int
        The number of steps; 1 of a direct solver.
    n_features_in_ : int
        The number of features.
    feature_names_in_ : ndarray of str
        The names of the features, where X has some.
    model_ : mercer.Model
        The fitted model; ``model_.info`` has solver, residual, memory and seconds.

    See Also
    --------
    MercerKernelRidgeCV : Chooses alpha and kernel.
    MercerNystroemRidge : For many samples.
    sklearn.kernel_ridge.KernelRidge : The same system.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import MercerKernelRidge
    >>> X = np.linspace(0, 6, 40).reshape(-1, 1)
    >>> model = MercerKernelRidge(1e-3, kernel="rbf", gamma=0.5).fit(X, np.sin(X[:, 0]))
    >>> print(f"{model.predict([[1.5]])[0]:.2f}")
    1.00
    """

    def __init__(self, alpha=1.0, *, kernel="linear", gamma=None, degree=3, coef0=1, fit_intercept=False, solver="auto", tol=1e-8,
                 max_iter=10000, random_state=None, device=None, threads=None, verbose=0):
        self.alpha = alpha
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.fit_intercept = fit_intercept
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter
        self.random_state = random_state
        self.device = device
        self.threads = threads
        self.verbose = verbose

    def _learner(self):
        return "kernel-ridge", "regression"

    def _parameters(self, X):
        return {
            **penalties(self.alpha, self._targets), "kernel": self._kernel(X), "intercept": self.fit_intercept,
            "solver": self.solver, "tol": self.tol, "iterations": self.max_iter, "seed": self._seed(),
        }

    @property
    def dual_coef_(self):
        check_is_fitted(self, "model_")
        return self._shaped(self.model_.array("alpha"))

    @property
    def X_fit_(self):
        check_is_fitted(self, "model_")
        if self._function:
            return self._function[1]
        centers = self.model_.array("centers")
        return centers[:, 2:] if self._pairwise() else centers


class MercerNystroemRidge(KernelParameters, MultiRegressor):
    """Kernel ridge regression with kernel functions at some of the samples only, for
    many samples: the minimum of ‖y − f(X)‖² + alpha βᵀk(C, C)β, f(x) = Σ β_j k(c_j, x).

    The memory grows with n_components², not with the samples.

    Parameters
    ----------
    alpha : float ≥ 0, default=1.0
        The penalty.
    kernel : str, callable or None, default="rbf"
        "linear", "rbf", "laplacian", "poly", "sigmoid", "cosine", "chi2" or
        "precomputed", as in scikit-learn; the text of a kernel of Mercer, such as
        "matern52(sigma=2) + 0.1*linear()"; a function of two rows, which Python calls
        for each pair; or None for a Gaussian whose sigma is half the median
        distance between the rows.
    gamma : float > 0, "scale", "auto" or None, default=None
        Of rbf, laplacian, poly, sigmoid and chi2. None and "auto" are 1/n_features
        (of chi2: 1), "scale" is 1/(n_features·X.var()).
    degree : int ≥ 1, default=3
        Of poly.
    coef0 : float ≥ 0, default=1
        Of poly and sigmoid.
    n_components : int, default=None
        The number of kernel functions; None is about 10√n_samples.
    choice : {"uniform", "rpcholesky"}, default="uniform"
        How their centers are chosen: uniformly, or by a randomly pivoted Cholesky factor.
    fit_intercept : bool, default=False
        Fit an unpenalized b.
    solver : {"auto", "normal", "falkon"}, default="auto"
        How the system is solved: by its normal equations, by conjugate gradients with
        their preconditioner (Falkon), or by the cheaper.
    tol : float, default=1e-6
        The relative residual of the normal equations.
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
    components_ : ndarray of shape (n_components, n_features)
        The centers c_j.
    coef_ : ndarray of shape (n_components,) or (n_components, n_targets)
        The coefficients β.
    kernel_ : str
        The kernel that was fitted with, as a text of Mercer.
    n_iter_ : int
        The number of steps; 1 of a direct solver.
    n_features_in_ : int
        The number of features.
    feature_names_in_ : ndarray of str
        The names of the features, where X has some.
    model_ : mercer.Model
        The fitted model; ``model_.info`` has solver, residual, memory and seconds.

    See Also
    --------
    MercerKernelRidge : With a kernel function at each sample.
    sklearn.kernel_approximation.Nystroem : The features of this model.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import MercerNystroemRidge
    >>> X = np.linspace(0, 6, 2000).reshape(-1, 1)
    >>> model = MercerNystroemRidge(1e-3, gamma=0.5, n_components=30).fit(X, np.sin(X[:, 0]))
    >>> model.components_.shape
    (30, 1)
    >>> print(f"{model.predict([[1.5]])[0]:.2f}")
    1.00
    """

    def __init__(self, alpha=1.0, *, kernel="rbf", gamma=None, degree=3, coef0=1, n_components=None, choice="uniform", fit_intercept=False,
                 solver="auto", tol=1e-6, random_state=None, device=None, threads=None, verbose=0):
        self.alpha = alpha
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.n_components = n_components
        self.choice = choice
        self.fit_intercept = fit_intercept
        self.solver = solver
        self.tol = tol
        self.random_state = random_state
        self.device = device
        self.threads = threads
        self.verbose = verbose

    def _learner(self):
        return "nystrom-ridge", "regression"

    def _parameters(self, X):
        count = self.n_components
        return {
            "kernel": self._kernel(X), "lambda": self.alpha, "intercept": self.fit_intercept,
            "centers": None if count is None else min(count, X.shape[0]), "choice": self.choice, "solver": self.solver, "tol": self.tol,
            "seed": self._seed(),
        }

    @property
    def components_(self):
        check_is_fitted(self, "model_")
        return self.model_.array("centers")

    @property
    def coef_(self):
        check_is_fitted(self, "model_")
        return self._shaped(self.model_.array("beta"))


class MercerFourierRidge(KernelParameters, MultiRegressor):
    """Ridge regression on random Fourier features of a translation invariant
    kernel, for many samples: f(x) = Σ β_j cos(ω_jᵀx) + β′_j sin(ω_jᵀx) + b.

    Parameters
    ----------
    alpha : float ≥ 0, default=1.0
        The penalty of β.
    kernel : str or None, default="rbf"
        "rbf" or "laplacian", as in scikit-learn; the text of a Gaussian, Laplacian,
        exponential, Matérn or rational quadratic kernel, of a sum or product of them,
        such as "matern52(sigma=2)"; or None for a Gaussian whose sigma is half
        the median distance between the rows.
    gamma : float > 0, "scale", "auto" or None, default=None
        Of rbf and laplacian. None and "auto" are 1/n_features, "scale" is
        1/(n_features·X.var()).
    n_components : int, default=None
        The number of features, two for each frequency; None is about 10√n_samples.
    orthogonal : bool, default=False
        Frequencies in orthogonal directions, which approach the kernel sooner.
    fit_intercept : bool, default=False
        Fit an unpenalized b.
    tol : float, default=1e-6
        The relative residual of the normal equations.
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
    kernel_ : str
        The kernel that was fitted with, as a text of Mercer.
    n_iter_ : int
        The number of steps of refinement.
    n_features_in_ : int
        The number of features.
    feature_names_in_ : ndarray of str
        The names of the features, where X has some.
    model_ : mercer.Model
        The fitted model; ``model_.info`` has solver, residual, memory and seconds.

    See Also
    --------
    sklearn.kernel_approximation.RBFSampler : Features of this kind.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import MercerFourierRidge
    >>> X = np.linspace(0, 6, 2000).reshape(-1, 1)
    >>> model = MercerFourierRidge(1e-3, gamma=0.5, n_components=60).fit(X, np.sin(X[:, 0]))
    >>> print(f"{model.predict([[1.5]])[0]:.2f}")
    1.00
    """

    def __init__(self, alpha=1.0, *, kernel="rbf", gamma=None, n_components=None, orthogonal=False, fit_intercept=False,
                 tol=1e-6, random_state=None, device=None, threads=None, verbose=0):
        self.alpha = alpha
        self.kernel = kernel
        self.gamma = gamma
        self.n_components = n_components
        self.orthogonal = orthogonal
        self.fit_intercept = fit_intercept
        self.tol = tol
        self.random_state = random_state
        self.device = device
        self.threads = threads
        self.verbose = verbose

    degree, coef0 = 3, 1  # of kernels that have no random features

    def _learner(self):
        return "fourier-ridge", "regression"

    def _parameters(self, X):
        return {
            "kernel": self._kernel(X), "lambda": self.alpha, "intercept": self.fit_intercept, "features": self.n_components,
            "orthogonal": self.orthogonal, "tol": self.tol, "seed": self._seed(),
        }


class MercerSVR(KernelParameters, Regressor):
    """ε-support vector regression, as scikit-learn's SVR.

    Parameters
    ----------
    kernel : str, callable or None, default="rbf"
        "linear", "rbf", "laplacian", "poly", "sigmoid", "cosine", "chi2" or
        "precomputed", as in scikit-learn; the text of a kernel of Mercer, such as
        "matern52(sigma=2) + 0.1*linear()"; a function of two rows, which Python calls
        for each pair; or None for a Gaussian with the gamma "scale".
    degree : int ≥ 1, default=3
        Of poly.
    gamma : float > 0, "scale", "auto" or None, default="scale"
        Of rbf, laplacian, poly, sigmoid and chi2. "scale" is 1/(n_features·X.var()),
        None and "auto" are 1/n_features (of chi2: 1).
    coef0 : float ≥ 0, default=0.0
        Of poly and sigmoid.
    tol : float > 0, default=1e-3
        The violation of the optimality conditions at which the steps end.
    C : float > 0, default=1.0
        The penalty of errors beyond epsilon.
    epsilon : float ≥ 0, default=0.1
        Errors up to it cost nothing; in the unit of y.
    cache_size : float, default=200
        The memory for rows of the kernel matrix, in megabytes.
    max_iter : int, default=-1
        The maximum of steps; -1 is the library's own.
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
    kernel_ : str
        The kernel that was fitted with, as a text of Mercer.
    n_iter_ : int
        The number of steps.
    n_features_in_ : int
        The number of features.
    feature_names_in_ : ndarray of str
        The names of the features, where X has some.
    model_ : mercer.Model
        The fitted model; ``model_.info`` has solver, residual, memory and seconds.

    See Also
    --------
    sklearn.svm.SVR : The same problem.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import MercerSVR
    >>> X = np.linspace(0, 6, 40).reshape(-1, 1)
    >>> model = MercerSVR(C=100, epsilon=0.01).fit(X, np.sin(X[:, 0]))
    >>> print(f"{model.predict([[1.5]])[0]:.1f}")
    1.0
    """

    def __init__(self, *, kernel="rbf", degree=3, gamma="scale", coef0=0.0, tol=1e-3, C=1.0, epsilon=0.1, cache_size=200, max_iter=-1,
                 random_state=None, device=None, threads=None, verbose=0):
        self.kernel = kernel
        self.degree = degree
        self.gamma = gamma
        self.coef0 = coef0
        self.tol = tol
        self.C = C
        self.epsilon = epsilon
        self.cache_size = cache_size
        self.max_iter = max_iter
        self.random_state = random_state
        self.device = device
        self.threads = threads
        self.verbose = verbose

    _unsupported = ORDER

    def _learner(self):
        return "svr", "regression"

    def _parameters(self, X):
        return {
            "kernel": self._kernel(X), "C": self.C, "epsilon": self.epsilon, "tol": self.tol,
            "iterations": max(self.max_iter, 0), "cache": self.cache_size, "standardize-target": False,
        }


class MercerRegressor(Regressor):
    """Any learner of regression, by its name and with its own parameters.

    Parameters
    ----------
    method : str, default="bayes-ridge"
        The learner: ``about()["learners"]`` and the command `mercer learners` list
        them with their parameters.
    params : dict, default=None
        The learner's parameters by Mercer's names, such as {"lambda": 0.1}; None is
        the default of each.
    device : str, default=None
        The processor, such as "cpu/avx2" (``about()["devices"]`` lists them); None is
        the best there is.
    threads : int, default=None
        The number of threads; None is all.
    verbose : int, default=0
        1 prints progress to stderr.

    Attributes
    ----------
    n_iter_ : int
        The number of steps; 1 where there are none.
    n_features_in_ : int
        The number of features.
    feature_names_in_ : ndarray of str
        The names of the features, where X has some.
    model_ : mercer.Model
        The fitted model; ``model_.info`` has solver, residual, memory and seconds.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import MercerRegressor
    >>> X = np.array([[1.0, 0], [0, 1], [1, 1], [2, 1]])
    >>> model = MercerRegressor("lasso", params={"lambda": 1e-6}).fit(X, X[:, 0])
    >>> print(f"{model.predict([[3, 5]])[0]:.3f}")
    3.000
    """

    def __init__(self, method="bayes-ridge", *, params=None, device=None, threads=None, verbose=0):
        self.method = method
        self.params = params
        self.device = device
        self.threads = threads
        self.verbose = verbose

    def _learner(self):
        return self.method, "regression"

    def _parameters(self, X):
        return self._more()
