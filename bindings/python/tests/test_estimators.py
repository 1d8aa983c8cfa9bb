"""Runs scikit-learn's own checks of estimators."""

import unittest
import warnings

from . import support  # noqa: F401: finds the package
from sklearn.exceptions import SkipTestWarning
from sklearn.utils.estimator_checks import check_estimator

import mercer

ESTIMATORS = [
    mercer.MercerRidge(),
    mercer.MercerKernelRidge(),
    mercer.MercerKernelRidge(kernel=None),
    mercer.MercerKernelRidge(kernel="rbf", fit_intercept=True, solver="cg"),
    mercer.MercerKernelRidgeCV(),
    mercer.MercerKernelRidgeCV(kernel=["rbf", None], gamma=[0.1, 1.0], scoring="gcv"),
    mercer.MercerKernelRidgeCV(kernel="rbf", fit_intercept=True, scoring="r2", alpha_per_target=True),
    mercer.MercerNystroemRidge(),
    mercer.MercerFourierRidge(),
    mercer.MercerGaussianProcess(),
    mercer.MercerSVR(),
    mercer.MercerNuSVR(),
    mercer.MercerRegressor(),
    mercer.MercerRegressor("lasso", params={"lambda": 0.01}),
    mercer.MercerOneClassSVM(),
    mercer.MercerClassifier(),
    mercer.MercerClassifier("ridge"),
    mercer.MercerClassifier("logistic"),
    # One of the checks has weights of 1000 and 0.0001: their rounding errors prevent a smaller tol.
    mercer.MercerClassifier("kernel-logistic", tol=1e-9),
    mercer.MercerClassifier("svc"),
    mercer.MercerClassifier("svc", probability=True),
    mercer.MercerNuSVC(nu=0.3),
    mercer.MercerClassifier("nystrom-ridge"),
]

# The only checks that may be skipped: the check that support vector machines, including
# scikit-learn's, fail because their steps depend on the order of the rows, a check whose weights of
# classes make nu infeasible, and the checks that need pandas.
MAY_SKIP = ("check_sample_weights_invariance", "check_class_weight_classifiers", "pandas")


class TestChecks(unittest.TestCase):
    def test_all(self):
        for estimator in ESTIMATORS:
            with self.subTest(estimator=estimator), warnings.catch_warnings(record=True) as seen:
                warnings.simplefilter("always")
                check_estimator(estimator)
                for w in seen:
                    if issubclass(w.category, SkipTestWarning):
                        self.assertTrue(any(word in str(w.message) for word in MAY_SKIP), str(w.message))
