"""Gaussian processes."""

from sklearn.utils.validation import check_is_fitted

from ._estimator import KernelParameters, documented
from ._parameters import GaussianProcessParameters
from ._regression import UncertainRegressor


@documented
class MercerGaussianProcess(GaussianProcessParameters, KernelParameters, UncertainRegressor):
    """Regression with a Gaussian process: y = f(x) + m + noise, f ~ GP(0, s²k),
    noise of variance s²·alpha.

    Kernel, alpha and s maximize the marginal likelihood, by its analytic gradients,
    unless optimize or fit_scale is False.

    Attributes
    ----------
    alpha_ : float
        The fitted variance of the noise, divided by s².
    log_marginal_likelihood_value_ : float
        The logarithm of the marginal likelihood of the fitted parameters.

    See Also
    --------
    sklearn.gaussian_process.GaussianProcessRegressor : The same model.

    Notes
    -----
    The first prediction with return_std computes a factor of 8·n_samples² bytes. The model
    keeps it, so that later predictions with return_std take O(n_samples²) operations for each
    row.

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

    @property
    def alpha_(self):
        check_is_fitted(self, "model_")
        return self.model_.info["parameters"]["lambda"]
