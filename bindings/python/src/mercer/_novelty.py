"""What is like the samples and what is not."""

import numpy as np
from sklearn.base import OutlierMixin

from ._estimator import ORDER, Estimator, KernelParameters, samples


class MercerOneClassSVM(OutlierMixin, KernelParameters, Estimator):
    """The one-class support vector machine, as scikit-learn's OneClassSVM.

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
        The violation of the optimality conditions at which the steps end, in units of
        the decision value, or of its range at the start where that is below 1.
    nu : float, default=0.5
        The maximum part of the samples of fit with a decision value below 0, and the
        minimum part that are support vectors; > 0 and ≤ 1.
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
    offset_ : float
        decision_function is score_samples − offset_.
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
    sklearn.svm.OneClassSVM : The same problem.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import MercerOneClassSVM
    >>> X = np.array([[0.0], [0.1], [0.2], [0.3], [0.4]])
    >>> MercerOneClassSVM(nu=0.2, gamma=1.0).fit(X).predict([[0.2], [9.0]]).tolist()
    [1, -1]
    """

    _unsupported = ORDER

    def __init__(self, *, kernel="rbf", degree=3, gamma="scale", coef0=0.0, tol=1e-3, nu=0.5, cache_size=200, max_iter=-1,
                 random_state=None, device=None, threads=None, verbose=0):
        self.kernel = kernel
        self.degree = degree
        self.gamma = gamma
        self.coef0 = coef0
        self.tol = tol
        self.nu = nu
        self.cache_size = cache_size
        self.max_iter = max_iter
        self.random_state = random_state
        self.device = device
        self.threads = threads
        self.verbose = verbose

    def _learner(self):
        return "one-class-svm", "novelty"

    def _parameters(self, X):
        return {
            "kernel": self._kernel(X), "nu": self.nu, "tol": self.tol, "iterations": max(self.max_iter, 0),
            "cache": self.cache_size,
        }

    def fit(self, X, y=None, sample_weight=None):
        """Fits the model.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The samples; of a precomputed kernel its (n_samples, n_samples) values.
        y : object, default=None
            Not used.
        sample_weight : array-like of shape (n_samples,), default=None
            Numbers ≥ 0, None being all 1. A sample of weight 0 is left out.

        Returns
        -------
        self : object

        Raises
        ------
        ValueError
            For data or parameters that are out of range, and where the steps do not
            converge; the text says what to change.
        """
        X = samples(self, X)
        self._fit_model(X, None, self._weights(sample_weight, X))
        self._set_offset()
        return self

    def _set_offset(self):
        self.offset_ = -float(self.model_.array("intercept")[0, 0])

    def decision_function(self, X):
        """Decision values.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The samples.

        Returns
        -------
        f : ndarray of shape (n_samples,)
            At least 0 for what is like the samples of fit.
        """
        return self._predict_model(X)[:, 0]

    def score_samples(self, X):
        """Decision values without the offset.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The samples.

        Returns
        -------
        scores : ndarray of shape (n_samples,)
            decision_function + offset_.
        """
        return self.decision_function(X) + self.offset_

    def predict(self, X):
        """Predicts what is like the samples of fit.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The samples.

        Returns
        -------
        y : ndarray of shape (n_samples,)
            1 for what is like the samples of fit, where decision_function is at least
            0, −1 for what is not.
        """
        return np.where(self.decision_function(X) >= 0, 1, -1)

    def _restore(self, model):
        super()._restore(model)
        self._set_offset()
        return self
