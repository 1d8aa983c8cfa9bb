"""Regression."""

import numpy as np
from sklearn.base import MultiOutputMixin, RegressorMixin
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_array, check_is_fitted

from ._errors import python_names
from ._estimator import Estimator, KernelParameters, SupportVectors, documented, samples
from ._parameters import (
    FourierRidgeParameters,
    KernelRidgeParameters,
    NuSVRParameters,
    NystroemRidgeParameters,
    RegressorParameters,
    RidgeParameters,
    SVRParameters,
)


def target_names(y):
    """The names of the targets if y is a Series or DataFrame whose names are texts, otherwise None."""
    columns = getattr(y, "columns", None)
    names = [getattr(y, "name", None)] if columns is None else list(columns)
    return names if all(isinstance(n, str) and n for n in names) else None


def _has_intervals(estimator):
    """Whether the estimator has predict_interval."""
    model = getattr(estimator, "model_", None)
    if model is None:
        knows = estimator._name() in ("kernel-ridge", "gaussian-process", "bayes-ridge", "rvm") or any(getattr(estimator, p, False) for p in ("intervals", "std"))
    else:
        knows = "intervals" in model.info["capabilities"]
    if not knows:
        name = type(estimator).__name__
        parameter = [p for p in ("intervals", "std") if hasattr(estimator, p)]
        raise AttributeError(f"{name} has no prediction intervals" + (f": set {parameter[0]}=True and fit again, or" if parameter else ":") +
                             " call calibrate(X, y) with samples that fit has not seen")
    return True


class Regressor(RegressorMixin, Estimator):
    """The base of the regression estimators with one target."""

    def fit(self, X, y, sample_weight=None):
        """Fits the model.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The samples, or the (n_samples, n_samples) matrix of a precomputed kernel.
            Arrays of float64 whose rows are contiguous are not copied.
        y : array-like of shape (n_samples,) or (n_samples, n_targets)
            The targets. Not all estimators accept several targets.
        sample_weight : array-like of shape (n_samples,), default=None
            Numbers ≥ 0; None means all 1. The fit ignores samples of weight 0.

        Returns
        -------
        self : object

        Raises
        ------
        ValueError
            If data or parameters are out of range; the message names them.
        mercer.OutOfMemory
            Before the computation, if it does not fit into the memory.
        mercer.NotPositiveDefinite
            If K + alpha I is singular or indefinite; the message says what to raise.
        mercer.NotConverged
            If the residual tol is not reached.
        mercer.DeviceUnavailable
            If this machine does not have the device.
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
            The samples; for a precomputed kernel, its values between these samples and the
            samples of fit.

        Returns
        -------
        y : ndarray of shape (n_samples,) or (n_samples, n_targets)
            The predictions, of the shape that y had in fit.
        """
        return self._shaped(self._predict_model(X))

    def calibrate(self, X, y):
        """Calibrates the split-conformal prediction intervals that predict_interval returns.

        The bounds are the prediction ± a quantile of the errors |y − f(X)| of these
        samples (Lei, G'Sell, Rinaldo, Tibshirani and Wasserman 2018, algorithm 2). The
        quantile is saved and pickled with the model; another fit discards it.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Samples that were not in the fit; for a precomputed kernel, its values between
            these samples and the samples of fit.
        y : array-like of shape (n_samples,) or (n_samples, n_targets)
            The targets of these samples.

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
        """Returns prediction intervals, which are of three kinds.

        Jackknife+ intervals (Barber, Candès, Ramdas and Tibshirani 2021), computed in
        closed form instead of by n refits: for MercerKernelRidge, and for MercerRidge with
        intervals=True. Split-conformal intervals: for every estimator after calibrate, and
        for a model of `mercer fit --calibrate`. These two kinds assume no distribution of
        the noise. Intervals of the normal distribution: for MercerGaussianProcess, and for
        MercerNystroemRidge and MercerFourierRidge with std=True.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The samples.
        level : float, default=0.9
            The wanted fraction of new targets in the intervals. For jackknife+ it is from 0.5
            to n/(n + 1) for n samples in the fit; the true fraction is usually about level,
            and at least 2·level − 1 for any noise if new samples and the samples of the fit
            are drawn from the same distribution. For split-conformal intervals from m
            samples, level may be up to m/(m + 1), and the true fraction is at least level
            and at most level + 1/(m + 1). Intervals of the normal distribution accept every
            level between 0 and 1.

        Returns
        -------
        lower : ndarray of shape (n_samples,) or (n_samples, n_targets)
            The lower bounds.
        upper : ndarray of shape (n_samples,) or (n_samples, n_targets)
            The upper bounds.

        Raises
        ------
        ValueError
            If level is out of range, and for MercerKernelRidge with alpha = 0.
        """
        return self._halves(self._predict_model(X, "intervals", level))

    def _halves(self, f):
        """The left and the right half of the columns."""
        half = f.shape[1] // 2
        return self._shaped(f[:, :half]), self._shaped(f[:, half:])

    def _shaped(self, f):
        return f[:, 0] if self._flat else f

    def _restore(self, model):
        self._flat = model.info["outputs"] == 1
        return super()._restore(model)


class MultiRegressor(MultiOutputMixin, Regressor):
    """The base of the regression estimators that accept several targets."""

    _multioutput = True


class BoundedRegressor(MultiRegressor):
    """A regression with proven bounds of the errors of predictions."""

    def predict(self, X, return_bound=False):
        """Predicts the targets, with return_bound also bounds of the errors of the computation.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The samples.
        return_bound : bool, default=False
            Also return proven bounds of the errors of the computation. They do not include
            the noise of the targets, for which there is predict_interval.

        Returns
        -------
        y : ndarray of shape (n_samples,) or (n_samples, n_targets)
            The predictions.
        bound : ndarray of shape (n_samples,) or (n_samples, n_targets)
            Returned if return_bound is True: bounds of the distance of each prediction from
            the prediction of the exact solution of the equations.

        Raises
        ------
        ValueError
            If return_bound is True and there is no bound, because the kernel is not positive
            semidefinite, alpha is 0, or the parameter bound of the estimator was False at
            the fit.
        """
        return self._halves(self._predict_model(X, "bounds")) if return_bound else super().predict(X)


class UncertainRegressor(BoundedRegressor):
    """A regression whose predictions have standard deviations."""

    def predict(self, X, return_std=False, return_bound=False):
        """Predicts the means, and the standard deviations.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The samples.
        return_std : bool, default=False
            Also return the standard deviations. An estimator with a parameter std has them only
            if std was True at the fit.
        return_bound : bool, default=False
            Also return proven bounds of the errors of the computation of the means.

        Returns
        -------
        mean : ndarray of shape (n_samples,) or (n_samples, n_targets)
            The means of new targets.
        std : ndarray of shape (n_samples,) or (n_samples, n_targets)
            Returned if return_std is True: the standard deviations of new targets, which
            include the noise (scikit-learn returns the standard deviations of f, unless its
            kernel has a WhiteKernel).
        bound : ndarray of shape (n_samples,) or (n_samples, n_targets)
            Returned if return_bound is True: bounds of the distance of each mean from the mean
            of the exact solution of the equations.

        Raises
        ------
        ValueError
            If return_std or return_bound is True and the parameter std or bound was False at
            the fit, or if there is no bound.
        """
        results = list(super().predict(X, True)) if return_bound else [super().predict(X)]
        if return_std:
            results.insert(1, self._shaped(self._predict_model(X, "deviations")))
        return tuple(results) if len(results) > 1 else results[0]

    @property
    def log_marginal_likelihood_value_(self):
        check_is_fitted(self, "model_")
        arrays = self.model_.info["arrays"]
        if "evidence" in arrays:
            return float(self.model_.array("evidence")[0, 0])
        if "likelihood" not in arrays:
            raise AttributeError(f"{type(self).__name__} has no likelihood: set std=True and fit again")
        return float(self.model_.array("likelihood")[0, 1])


def _keeps_posterior(estimator):
    """Whether the model keeps its posterior, or will after a fit."""
    if not estimator.std:
        raise AttributeError(f"{type(estimator).__name__} keeps no posterior: set std=True and fit again")
    return True


class UpdatableRegressor(UncertainRegressor):
    """A regression with a posterior, from which samples can be appended and removed."""

    @available_if(_keeps_posterior)
    def partial_fit(self, X, y, sample_weight=None):
        """Appends samples to the model without a refit; the first call is fit.

        The result is that of fit to all samples with the same kernel, alpha, and centers
        or frequencies, up to rounding. The time does not depend on the number of earlier
        samples.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The samples.
        y : array-like of shape (n_samples,) or (n_samples, n_targets)
            The targets.
        sample_weight : array-like of shape (n_samples,), default=None
            Numbers ≥ 0; None means all 1.

        Returns
        -------
        self : object

        Examples
        --------
        >>> import numpy as np
        >>> from mercer import MercerRidge
        >>> X = np.arange(8.0).reshape(-1, 1)
        >>> model = MercerRidge(std=True).fit(X[:3], X[:3, 0] ** 2).partial_fit(X[3:], X[3:, 0] ** 2)
        >>> all = MercerRidge().fit(X, X[:, 0] ** 2)
        >>> bool(abs(model.coef_ - all.coef_) < 1e-12)
        True
        """
        if not hasattr(self, "model_"):
            return self.fit(X, y, sample_weight)
        return self._update(X, y, sample_weight, False)

    @available_if(_keeps_posterior)
    def remove(self, X, y, sample_weight=None):
        """Removes samples from the model without a refit: the inverse of partial_fit.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Samples of the fit.
        y : array-like of shape (n_samples,) or (n_samples, n_targets)
            Their targets.
        sample_weight : array-like of shape (n_samples,), default=None
            Their weights in the fit; None means all 1.

        Returns
        -------
        self : object

        Raises
        ------
        ValueError
            If the equations show that the samples were not in the fit, or if no sample would remain.
        """
        check_is_fitted(self, "model_")
        return self._update(X, y, sample_weight, True)

    @available_if(_keeps_posterior)
    def merge(self, other):
        """Merges the model with that of another estimator, which was fitted to other
        samples, without a refit.

        Parameters
        ----------
        other : estimator
            A fitted estimator of the same class, with the same kernel, alpha, and centers
            or frequencies.

        Returns
        -------
        self : object
        """
        check_is_fitted(self, "model_")
        check_is_fitted(other, "model_")
        with python_names(self._names()):
            self.model_ = self.model_.merge(other.model_, device=self.device, threads=self.threads, say=self._say("merge"))
        return self

    @available_if(_keeps_posterior)
    def sample_y(self, X, n_samples=1, random_state=0):
        """Draws functions from the posterior, without noise, like
        GaussianProcessRegressor of scikit-learn.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_points, n_features)
            The points.
        n_samples : int, default=1
            The number of functions.
        random_state : int, RandomState instance or None, default=0
            The seed; None always gives the same draws.

        Returns
        -------
        values : ndarray of shape (n_points, n_samples) or (n_points, n_targets, n_samples)
            The values of each function at the points.
        """
        values = self._draws(X, n_samples, self._seed(random_state))
        values = np.moveaxis(values, 0, -1)
        return values[:, 0] if self._flat else values


@documented
class MercerRidge(RidgeParameters, UpdatableRegressor):
    """Ridge regression: the minimum of ‖y − Xw − b‖² + alpha ‖w‖².

    With std=True the model keeps the posterior of Bayesian linear regression, for
    return_std, predict_interval, partial_fit and sample_y.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,) or (n_targets, n_features)
        The weights w.
    intercept_ : float or ndarray of shape (n_targets,)
        The intercepts b.
    log_marginal_likelihood_value_ : float
        With std=True: the logarithm of the marginal likelihood.

    See Also
    --------
    sklearn.linear_model.Ridge : Computes the same minimum.
    MercerKernelRidge : Ridge regression with a kernel.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import MercerRidge
    >>> X = np.arange(8.0).reshape(-1, 1)
    >>> model = MercerRidge(alpha=0).fit(X, 1 + 2 * X[:, 0])
    >>> print(f"{model.coef_[0]:.2f} {model.intercept_:.2f}")
    2.00 1.00
    """

    @property
    def coef_(self):
        check_is_fitted(self, "model_")
        return self._shaped(self.model_.array("coef")).T

    @property
    def intercept_(self):
        check_is_fitted(self, "model_")
        b = self.model_.array("intercept")[0]
        return float(b[0]) if self._flat else b


@documented
class MercerKernelRidge(KernelRidgeParameters, KernelParameters, BoundedRegressor):
    """Kernel ridge regression: f(x) = Σ a_i k(x_i, x) + b with
    (K + alpha W⁻¹)a + b = y and the diagonal matrix W of the sample weights.

    The predictions are those of scikit-learn's KernelRidge with the same parameters.

    Attributes
    ----------
    dual_coef_ : ndarray of shape (n_samples,) or (n_samples, n_targets)
        The coefficients a of the samples of weight > 0.
    X_fit_ : ndarray of shape (n_samples, n_features)
        The samples of weight > 0.

    See Also
    --------
    MercerKernelRidgeCV : Chooses alpha and kernel.
    MercerNystroemRidge : An approximation for many samples.
    sklearn.kernel_ridge.KernelRidge : Solves the same system.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import MercerKernelRidge
    >>> X = np.linspace(0, 6, 40).reshape(-1, 1)
    >>> model = MercerKernelRidge(1e-3, kernel="rbf", gamma=0.5).fit(X, np.sin(X[:, 0]))
    >>> print(f"{model.predict([[1.5]])[0]:.2f}")
    1.00
    """

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


@documented
class MercerNystroemRidge(NystroemRidgeParameters, KernelParameters, UpdatableRegressor):
    """Kernel ridge regression for many samples, with a small number of centers c_j: the
    minimum of ‖y − f(X)‖² + alpha βᵀk(C, C)β for f(x) = Σ β_j k(c_j, x).

    The memory of the fit grows with n_components², not with the number of samples. With
    std=True the model keeps the posterior of the Gaussian process with this mean, for
    return_std, predict_interval, partial_fit and sample_y (Quiñonero-Candela and
    Rasmussen 2005).

    Attributes
    ----------
    components_ : ndarray of shape (n_components, n_features)
        The centers c_j; if the kernel is precomputed or a function, the kernel values
        between each center and the samples of fit.
    coef_ : ndarray of shape (n_components,) or (n_components, n_targets)
        The coefficients β.
    log_marginal_likelihood_value_ : float
        With std=True: the logarithm of the marginal likelihood.

    See Also
    --------
    MercerKernelRidge : Has a kernel function at each sample.
    MercerGaussianProcess : The exact process.
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
    >>> mean, std = model.set_params(std=True).fit(X, np.sin(X[:, 0])).predict([[1.5], [60.0]], return_std=True)
    >>> bool(std[0] < std[1])
    True
    """

    def _parameters(self, X):
        given = super()._parameters(X)
        count = self.n_components
        return {**given, "centers": None if count is None else min(count, X.shape[0])}

    def _centers(self):
        if self.components is None:
            return None
        if self._pairwise() or callable(self.kernel):
            raise ValueError("components must be None for a kernel that is precomputed or a function of Python")
        centers = check_array(self.components, dtype=np.float64)
        if centers.shape[1] != self.n_features_in_:
            raise ValueError(f"components has {centers.shape[1]} columns, X has {self.n_features_in_} features")
        return centers

    @property
    def components_(self):
        check_is_fitted(self, "model_")
        centers = self.model_.array("centers")
        return centers[:, 2:] if self._pairwise() or self._function else centers

    @property
    def coef_(self):
        check_is_fitted(self, "model_")
        return self._shaped(self.model_.array("beta"))


@documented
class MercerFourierRidge(FourierRidgeParameters, KernelParameters, UpdatableRegressor):
    """Ridge regression for many samples with random Fourier features of a
    translation-invariant kernel: f(x) = Σ β_j cos(ω_jᵀx) + β′_j sin(ω_jᵀx) + b.

    With std=True the model keeps the posterior of Bayesian linear regression on the
    features, for return_std, predict_interval, partial_fit and sample_y.

    Attributes
    ----------
    log_marginal_likelihood_value_ : float
        With std=True: the logarithm of the marginal likelihood.

    See Also
    --------
    sklearn.kernel_approximation.RBFSampler : Random Fourier features of the Gaussian kernel.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import MercerFourierRidge
    >>> X = np.linspace(0, 6, 2000).reshape(-1, 1)
    >>> model = MercerFourierRidge(1e-3, gamma=0.5, n_components=60).fit(X, np.sin(X[:, 0]))
    >>> print(f"{model.predict([[1.5]])[0]:.2f}")
    1.00
    """

    degree, coef0 = 3, 1  # KernelParameters reads them; no kernel with random features uses them


@documented
class MercerSVR(SVRParameters, SupportVectors, Regressor):
    """ε-support vector regression, with the interface of scikit-learn's SVR.

    See Also
    --------
    sklearn.svm.SVR : Solves the same problem.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import MercerSVR
    >>> X = np.linspace(0, 6, 40).reshape(-1, 1)
    >>> model = MercerSVR(C=100, epsilon=0.01).fit(X, np.sin(X[:, 0]))
    >>> print(f"{model.predict([[1.5]])[0]:.1f}")
    1.0
    """

    def _parameters(self, X):
        return {**super()._parameters(X), "standardize-target": False}


@documented
class MercerNuSVR(NuSVRParameters, MercerSVR):
    """ν-support vector regression, with the interface of scikit-learn's NuSVR.

    The fit finds the ε for which at most a fraction nu of the samples has a larger error:
    ``model_.info["facts"]["epsilon"]``.

    See Also
    --------
    sklearn.svm.NuSVR : Solves the same problem.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import MercerNuSVR
    >>> X = np.linspace(0, 6, 40).reshape(-1, 1)
    >>> model = MercerNuSVR(nu=0.2, C=100).fit(X, np.sin(X[:, 0]))
    >>> print(f"{model.predict([[1.5]])[0]:.1f}")
    1.0
    """


@documented
class MercerRegressor(RegressorParameters, Regressor):
    """Any regression learner, chosen by its name, with its own parameters.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import MercerRegressor
    >>> X = np.array([[1.0, 0], [0, 1], [1, 1], [2, 1]])
    >>> model = MercerRegressor("lasso", params={"lambda": 1e-6}).fit(X, X[:, 0])
    >>> print(f"{model.predict([[3, 5]])[0]:.3f}")
    3.000
    """
