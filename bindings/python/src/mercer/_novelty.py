"""Novelty detection: which new samples are like the training samples."""

import numpy as np
from sklearn.base import OutlierMixin

from ._estimator import Estimator, SupportVectors, documented, samples
from ._parameters import OneClassSVMParameters


@documented
class MercerOneClassSVM(OneClassSVMParameters, OutlierMixin, SupportVectors, Estimator):
    """The one-class support vector machine, with the interface of scikit-learn's OneClassSVM.

    Attributes
    ----------
    offset_ : float
        decision_function is score_samples − offset_.

    See Also
    --------
    sklearn.svm.OneClassSVM : Solves the same problem.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import MercerOneClassSVM
    >>> X = np.array([[0.0], [0.1], [0.2], [0.3], [0.4]])
    >>> MercerOneClassSVM(nu=0.2, gamma=1.0).fit(X).predict([[0.2], [9.0]]).tolist()
    [1, -1]
    """

    def fit(self, X, y=None, sample_weight=None):
        """Fits the model.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The samples, or the (n_samples, n_samples) matrix of a precomputed kernel.
        y : object, default=None
            Not used.
        sample_weight : array-like of shape (n_samples,), default=None
            Numbers ≥ 0; None means all 1. The fit ignores samples of weight 0.

        Returns
        -------
        self : object

        Raises
        ------
        ValueError
            If data or parameters are out of range, or if the iteration does not converge;
            the message says what to change.
        """
        X = samples(self, X)
        self._fit_model(X, None, self._weights(sample_weight, X))
        self._set_offset()
        return self

    def _set_offset(self):
        self.offset_ = -float(self.model_.array("intercept")[0, 0])

    def decision_function(self, X):
        """Returns the decision values.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The samples.

        Returns
        -------
        f : ndarray of shape (n_samples,)
            At least 0 for samples that are like the samples of fit.
        """
        return self._predict_model(X)[:, 0]

    def score_samples(self, X):
        """Returns the decision values without the offset.

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
        """Predicts which samples are like the samples of fit.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The samples.

        Returns
        -------
        y : ndarray of shape (n_samples,)
            1 for samples that are like the samples of fit, whose decision_function is
            at least 0, and −1 for others.
        """
        return np.where(self.decision_function(X) >= 0, 1, -1)

    def _restore(self, model):
        super()._restore(model)
        self._set_offset()
        return self
