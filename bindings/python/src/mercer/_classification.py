"""Classification."""

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils import compute_sample_weight
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets

from ._estimator import ORDER, Estimator, KernelParameters, SupportVectors, documented, samples
from ._parameters import ClassifierParameters, NuSVCParameters
from ._regression import target_names

# The methods whose models always have probabilities. The list is used before a fit.
_PROBABILITIES = ("logistic", "kernel-logistic", "rvc")


def _has_probabilities(estimator):
    """Whether the estimator has predict_proba."""
    model = getattr(estimator, "model_", None)
    if model is not None:
        knows = "probabilities" in model.info["capabilities"]
    else:
        knows = estimator.method in _PROBABILITIES or estimator.method == "svc" and estimator.probability
    if not knows:
        raise AttributeError(f"method {estimator.method!r} has no probabilities" + (": set probability=True" if estimator.method == "svc" else ""))
    return True


def _has_sets(estimator):
    """Whether the estimator has predict_set."""
    model = getattr(estimator, "model_", None)
    if model is None or "sets" not in model.info["capabilities"]:
        raise AttributeError(f"{type(estimator).__name__} has no sets of classes: call calibrate(X, y) with samples that fit has not seen")
    return True


@documented
class MercerClassifier(ClassifierParameters, ClassifierMixin, KernelParameters, Estimator):
    """Classification by kernel ridge, logistic regression, a support vector machine
    or any other of Mercer's learners of classes.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The classes, sorted.

    See Also
    --------
    sklearn.svm.SVC : method="svc".
    sklearn.linear_model.LogisticRegression : method="logistic".

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import MercerClassifier
    >>> X = np.array([[0.0, 0], [1, 1], [0, 1], [1, 0]])
    >>> y = np.array(["same", "same", "differ", "differ"])
    >>> MercerClassifier("svc", C=100, gamma=1.0).fit(X, y).predict(X).tolist()
    ['same', 'same', 'differ', 'differ']
    """

    @property
    def _unsupported(self):
        return ORDER if self.method == "svc" else {}

    def _parameters(self, X):
        given = super()._parameters(X)
        if "C" in given:  # C replaces lambda, unless params has a lambda
            del given["C" if "lambda" in self._more() else "lambda"]
        return given

    def fit(self, X, y, sample_weight=None):
        """Fits the model.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The samples, or the (n_samples, n_samples) matrix of a precomputed kernel.
        y : array-like of shape (n_samples,)
            The classes, as texts or numbers.
        sample_weight : array-like of shape (n_samples,), default=None
            Numbers ≥ 0; None means all 1. The fit ignores samples of weight 0, and thus
            also a class that occurs only in such samples.

        Returns
        -------
        self : object

        Raises
        ------
        ValueError
            For data or parameters that are out of range, and if the method does not
            converge; the message says what to change.
        mercer.OutOfMemory, mercer.NotPositiveDefinite, mercer.NotConverged, mercer.DeviceUnavailable
            As in MercerKernelRidge.fit.
        """
        names = target_names(y)
        X, y = samples(self, X, y)
        check_classification_targets(y)
        found, places = np.unique(y, return_inverse=True)
        weights = self._weights(sample_weight, X)
        if self.class_weight is not None:
            by_class = compute_sample_weight(self.class_weight, y)
            weights = by_class if weights is None else by_class * weights
        targets = places.reshape(-1, 1).astype(np.float64)
        self._fit_model(X, targets, weights, classes=[_label(v) for v in found.tolist()], targets=names)
        # The model has no class that occurs only in rows of weight 0.
        self.classes_ = found[np.asarray(self.model_.info["labels"], dtype=int)]
        return self

    def predict(self, X):
        """Predicts the classes.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The samples.

        Returns
        -------
        y : ndarray of shape (n_samples,)
            The classes.
        """
        values = self._predict_model(X)[:, 0]
        return self.classes_[np.searchsorted(self.model_.info["labels"], values)]

    def decision_function(self, X):
        """Returns the decision values.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The samples.

        Returns
        -------
        f : ndarray of shape (n_samples,) or (n_samples, n_classes)
            For two classes, one value for each sample, which is > 0 for the second class.
            For more classes, one value for each class; predict returns the class with
            the largest value, except for svc with probability=True.
        """
        f = self._predict_model(X, "decision")
        return f[:, 0] if f.shape[1] == 1 else f

    @available_if(_has_probabilities)
    def predict_proba(self, X):
        """Predicts the probabilities of the classes. Not every method has them.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The samples.

        Returns
        -------
        p : ndarray of shape (n_samples, n_classes)
            The probabilities in the order of ``classes_``.
        """
        return self._predict_model(X, "probabilities")

    @available_if(_has_probabilities)
    def predict_log_proba(self, X):
        """Returns the natural logarithms of the probabilities of predict_proba.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The samples.

        Returns
        -------
        log_p : ndarray of shape (n_samples, n_classes)
            The logarithms in the order of ``classes_``.
        """
        return np.log(self.predict_proba(X))

    def calibrate(self, X, y):
        """Calibrates the split-conformal sets of classes that predict_set returns.

        The calibration is saved and pickled with the model; another fit discards it.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Samples that were not in the fit; for a precomputed kernel, its values between
            these samples and the samples of fit.
        y : array-like of shape (n_samples,)
            The classes of these samples, which may include classes that were not in the fit.
            No predicted set contains such a class.

        Returns
        -------
        self : object
        """
        labels = np.asarray(self.model_.info["labels"]) if hasattr(self, "model_") else None

        def targets(y):
            places = np.full((len(y), 1), labels.max() + 1)  # this index belongs to no class
            for label, name in zip(labels, self.classes_):
                places[y == name] = label
            return places

        return self._calibrate(X, y, targets=targets)

    @available_if(_has_sets)
    def predict_set(self, X, level=0.9):
        """Returns sets of classes that contain the class of a new sample with probability level.

        The probability holds for any distribution from which both the new samples and the
        samples of calibrate are drawn (Sadinle, Lei and Wasserman 2019).

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The samples.
        level : float, default=0.9
            The fraction of new samples whose class is in their set: 0 < level ≤ m/(m + 1),
            where m is the number of samples in calibrate.

        Returns
        -------
        sets : ndarray of bool of shape (n_samples, n_classes)
            Whether each class is in the set, in the order of ``classes_``. Every set
            contains the class that predict returns.
        """
        return self._predict_model(X, "sets", level) == 1

    def _restore(self, model):
        self.classes_ = _classes(model.info["classes"])
        return super()._restore(model)


@documented
class MercerNuSVC(NuSVCParameters, SupportVectors, MercerClassifier):
    """ν-support vector classification, with the interface of scikit-learn's NuSVC.

    For each pair of classes the fit finds the C for which at most a fraction nu of the
    samples of the pair lies beyond the margin of its class. nu must be at most twice the
    fraction of the smaller class.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The classes, sorted.

    See Also
    --------
    sklearn.svm.NuSVC : Solves the same problem.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import MercerNuSVC
    >>> X = np.array([[0.0, 0], [1, 1], [0, 1], [1, 0]])
    >>> y = np.array(["same", "same", "differ", "differ"])
    >>> MercerNuSVC(gamma=1.0).fit(X, y).predict(X).tolist()
    ['same', 'same', 'differ', 'differ']
    """

    method = "svc"
    _unsupported = {**ORDER, "check_class_weight_classifiers": "the weights of the classes make nu infeasible, as in scikit-learn's NuSVC"}


def _label(value):
    """The text of a class in the model file."""
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value)


def _classes(names):
    """Classes from their texts: as numbers if all of them are numbers."""
    for kind in (int, float):
        try:
            return np.asarray([kind(n) for n in names])
        except ValueError:
            pass
    return np.asarray(names)
