"""Fitted estimators of scikit-learn, as Mercer's."""

import hashlib
import json
import struct

import numpy as np
from scipy.sparse import csr_matrix, issparse
from sklearn.gaussian_process import GaussianProcessRegressor, kernels
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, SVR, NuSVC, NuSVR, OneClassSVM
from sklearn.utils.validation import check_is_fitted

from ._classification import _label
from ._files import restored
from ._kernels import kernel_text
from ._model import Model


def from_sklearn(estimator):
    """Converts a fitted estimator of scikit-learn to one of Mercer, without a new fit.

    Predictions and decision values equal those of scikit-learn up to rounding. An SVC
    resolves ties of votes as with break_ties=True. With probability=True, the most probable
    class is predicted, and the probabilities differ within LIBSVM's tolerance,
    0.005/n_classes. The result can be saved for the command mercer and for Go.

    Parameters
    ----------
    estimator : object
        A fitted SVC, NuSVC, SVR, NuSVR, OneClassSVM, KernelRidge, GaussianProcessRegressor,
        Ridge or LogisticRegression, or a Pipeline of a StandardScaler and one of them. The
        result for a Pipeline takes the columns before scaling.

    Returns
    -------
    estimator : object
        The fitted estimator of Mercer, as from `load`. The standard deviations of a
        MercerGaussianProcess include the noise alpha of scikit-learn's estimator.

    Raises
    ------
    ValueError
        If the estimator is of another class, is not fitted, or has a kernel or an option that
        Mercer's models cannot represent; the message names it.

    Examples
    --------
    >>> import mercer
    >>> from sklearn.svm import SVC
    >>> X, y = [[0.0, 0], [1, 1], [0, 1], [1, 0]], ["same", "same", "differ", "differ"]
    >>> mercer.from_sklearn(SVC(C=100, gamma=1.0).fit(X, y)).predict(X).tolist()
    ['same', 'same', 'differ', 'differ']
    """
    first, scaler = estimator, None
    if isinstance(estimator, Pipeline) and len(estimator.steps) == 2 and isinstance(estimator.steps[0][1], StandardScaler):
        first = scaler = estimator.steps[0][1]
        estimator = estimator.steps[1][1]
    for kinds, convert in _CONVERT:
        if isinstance(estimator, kinds):
            check_is_fitted(estimator)
            learner, params, arrays, targets = convert(estimator)
            break
    else:
        names = ", ".join(kind.__name__ for kinds, _ in _CONVERT for kind in kinds)
        raise ValueError(f"from_sklearn reads {names}, not {type(estimator).__name__}")
    classes = getattr(estimator, "classes_", None)
    if classes is not None:
        params["classes"] = json.dumps([_label(v) for v in classes.tolist()])
        arrays["labels"] = np.arange(len(classes), dtype=float)
        targets = 1
    features = list(getattr(first, "feature_names_in_", [f"x{j + 1}" for j in range(first.n_features_in_)]))
    metadata = {"learner": learner, "model": json.dumps(params), "encoder": json.dumps(_encoder(params, features, scaler, targets, classes))}
    made = restored(Model.from_bytes(_file(metadata, arrays)))
    if classes is not None:
        made.classes_ = classes.copy()
    return made


def _encoder(params, features, scaler, targets, classes):
    """The columns of tables: the features, which a scaler may standardize, and the targets."""
    d = len(features)
    mean = [0.0] * d if scaler is None or scaler.mean_ is None or not scaler.with_mean else scaler.mean_.tolist()
    scale = [1.0] * d if scaler is None or scaler.scale_ is None else scaler.scale_.tolist()
    if any(name.endswith(".features") for name in params):
        inputs = [{"name": f"x1-x{d}", "sparse": {"first": 1, "columns": d, "scale": scale}}]
    else:
        inputs = [{"name": name, "number": {"fill": 0, "mean": m, "scale": s}} for name, m, s in zip(features, mean, scale)]
    outputs = [] if not targets else ["y"] if targets == 1 else [f"y{j + 1}" for j in range(targets)]
    while set(outputs) & set(features):
        outputs = ["_" + name for name in outputs]
    encoder = {"inputs": inputs, "outputs": outputs, "refuse_missing": True, "na_values": None}
    if classes is not None:
        encoder["labels"] = json.loads(params["classes"])
    return encoder


def _file(metadata, arrays):
    """The bytes of a model file, whose format the Go package internal/modelfile describes."""
    metadata = {"format": "mercer", "version": "1", **metadata}
    arrays = {name: np.atleast_2d(np.asarray(arrays[name], dtype="<f8")) for name in sorted(arrays)}

    def text(s):
        return struct.pack("<q", len(s.encode("utf-8"))) + s.encode("utf-8")

    digest, header, data, end = hashlib.sha256(), {}, [], 0
    for key in sorted(metadata):
        digest.update(text(key) + text(metadata[key]))
    for name, a in arrays.items():
        digest.update(text(name) + text("F64") + struct.pack("<qqq", 2, *a.shape))
        header[name] = {"dtype": "F64", "shape": list(a.shape), "data_offsets": [end, end + a.nbytes]}
        data.append(a.tobytes())
        end += a.nbytes
    data = b"".join(data)
    digest.update(data)
    head = json.dumps({"__metadata__": {**metadata, "sha256": digest.hexdigest()}, **header}).encode("utf-8")
    head += b" " * (-len(head) % 8)
    return struct.pack("<Q", len(head)) + head + data


def _points(name, X):
    """The parameters and arrays of points, dense or sparse."""
    if not issparse(X):
        return {}, {name: X}
    X = csr_matrix(X)
    X.sort_indices()
    arrays = {f"{name}.starts": X.indptr}
    if X.nnz:
        arrays.update({f"{name}.columns": X.indices, f"{name}.values": X.data})
    return {f"{name}.features": X.shape[1]}, arrays


def _kernel(estimator, gamma, X):
    if callable(estimator.kernel) or estimator.kernel == "precomputed":
        raise ValueError(f"the kernel of {type(estimator).__name__} is {estimator.kernel!r}, whose values for new samples only Python can compute")
    if estimator.kernel not in ("linear", "rbf", "poly", "polynomial", "sigmoid", "laplacian", "cosine", "chi2"):
        raise ValueError(f"the kernel {estimator.kernel!r} of {type(estimator).__name__} is none of linear, rbf, poly, sigmoid, laplacian, cosine and chi2")
    return kernel_text(estimator.kernel, gamma, estimator.degree, estimator.coef0, X)


def _machine(learner):
    def convert(s):
        params, arrays = _points("points", s.support_vectors_)
        params["kernel"] = _kernel(s, s._gamma, s.support_vectors_)
        dual = s.dual_coef_.toarray() if issparse(s.dual_coef_) else s.dual_coef_
        return learner, params, {**arrays, "beta": dual.T, "intercept": s.intercept_}, 0 if learner == "one-class-svm" else 1

    return convert


def _svc(s):
    _, params, arrays, _ = _machine("svc")(s)
    # Mercer's decision values of a pair are positive for the second class. scikit-learn's are, too, for
    # two classes; for more classes it uses LIBSVM's values, which are positive for the first class.
    sign = 1 if len(s.classes_) == 2 else -1
    arrays["coef"], arrays["intercept"] = sign * arrays.pop("beta"), sign * s.intercept_
    arrays["counts"] = s.n_support_
    params["probability"] = bool(s.probability)
    if s.probability:
        arrays["sigmoid"] = [s.probA_, -s.probB_]  # LIBSVM's values give the probability of the first class
    return "svc", params, arrays, 1


def _columns(a):
    """An array of one target or of several as a matrix with a column for each target."""
    a = np.asarray(a)
    return a.reshape(-1, 1) if a.ndim == 1 else a


def _penalty(alpha, targets):
    alpha = np.asarray(alpha, dtype=float).reshape(-1)
    return {"lambda": alpha[0]}, {} if alpha.size == 1 else {"lambdas": np.broadcast_to(alpha, targets)}


def _kernel_ridge(s):
    params, arrays = _points("centers", s.X_fit_)
    if s.kernel_params:
        raise ValueError("kernel_params of KernelRidge is not read")
    params["kernel"] = _kernel(s, s.gamma, s.X_fit_)
    dual = _columns(s.dual_coef_)
    alpha, more = _penalty(s.alpha, dual.shape[1])
    return "kernel-ridge", {**params, **alpha, "intercept": False}, {**arrays, **more, "alpha": dual, "intercept": np.zeros(dual.shape[1])}, dual.shape[1]


def _ridge(s):
    coef = np.atleast_2d(s.coef_).T
    targets = coef.shape[1]
    alpha, more = _penalty(s.alpha, targets)
    return "ridge", {**alpha, "intercept": bool(s.fit_intercept)}, {**more, "coef": coef, "intercept": np.broadcast_to(s.intercept_, targets)}, targets


def _logistic(s):
    classes = len(s.classes_)
    kind = getattr(s, "multi_class", "auto")
    if kind in ("auto", "deprecated"):
        kind = "ovr" if s.solver == "liblinear" or classes == 2 else "multinomial"
    if (kind == "ovr") != (classes == 2):
        raise ValueError(f"LogisticRegression with multi_class={kind!r} for {classes} classes has other probabilities than Mercer's: fit it with multi_class='auto' and a solver other than liblinear")
    return "logistic", {"lambda": 1 / s.C}, {"coef": s.coef_.T, "intercept": s.intercept_}, 1


def _gaussian_process(s):
    text, white = _covariance(s.kernel_)
    alpha = _columns(s.alpha_)
    n, targets = alpha.shape
    noise = np.broadcast_to(np.asarray(s.alpha, dtype=float) + white, n)
    scale = np.broadcast_to(s._y_train_std, targets)
    if text is None:
        raise ValueError(f"the kernel {s.kernel_} of GaussianProcessRegressor is noise only")
    arrays = {
        "centers": s.X_train_, "alpha": alpha * scale, "intercept": np.broadcast_to(s._y_train_mean, targets), "scale": scale**2,
        "weights": noise[0] / noise, "evidence": s.log_marginal_likelihood_value_ - n * np.log(scale).sum(),
    }
    return "gaussian-process", {"kernel": text, "lambda": float(noise[0])}, arrays, targets


def _covariance(k):
    """The text of a kernel of Gaussian processes, or None for noise only, and the variance of the noise."""
    if isinstance(k, kernels.WhiteKernel):
        return None, k.noise_level
    if isinstance(k, (kernels.Sum, kernels.Product)):
        (a, noise), (b, more) = _covariance(k.k1), _covariance(k.k2)
        if isinstance(k, kernels.Sum):
            return "+".join(t for t in (a, b) if t) or None, noise + more
        for constant, other in ((k.k1, noise + more), (k.k2, noise + more)):
            if isinstance(constant, kernels.ConstantKernel) and not (a and b):
                return None, constant.constant_value * other
        if not noise and not more:
            return f"({a})*({b})", 0.0
    if isinstance(k, kernels.ConstantKernel):
        return repr(float(k.constant_value)), 0.0
    if isinstance(k, kernels.RBF) and type(k) is kernels.RBF:
        return f"gaussian(sigma={_number(k.length_scale)})", 0.0
    if isinstance(k, kernels.Matern) and np.size(k.length_scale) == 1:
        name = {0.5: "exponential", 1.5: "matern32", 2.5: "matern52", np.inf: "gaussian"}.get(k.nu)
        if name:
            return f"{name}(sigma={float(np.reshape(k.length_scale, -1)[0])!r})", 0.0
    if isinstance(k, kernels.RationalQuadratic):
        return f"rationalquadratic(a={float(k.alpha)!r},sigma={float(k.length_scale)!r})", 0.0
    if isinstance(k, kernels.ExpSineSquared):
        return f"periodic(period={float(k.periodicity)!r},sigma={float(k.length_scale)!r})", 0.0
    if isinstance(k, kernels.DotProduct):
        return f"linear()+{float(k.sigma_0) ** 2!r}", 0.0
    if isinstance(k, kernels.Exponentiation) and float(k.exponent).is_integer() and k.exponent >= 1:
        text, noise = _covariance(k.kernel)
        if not noise:
            return "*".join([f"({text})"] * int(k.exponent)), 0.0
    raise ValueError(f"the kernel {k} of GaussianProcessRegressor is not read: sums, products and integer powers of ConstantKernel, RBF, "
                     "Matern with nu 0.5, 1.5, 2.5 or inf and one length scale, RationalQuadratic, ExpSineSquared and DotProduct are, with WhiteKernel as a term")


def _number(length):
    """The text of one length scale or of a list of them."""
    if np.size(length) == 1:
        return repr(float(np.reshape(length, -1)[0]))
    return "[" + ",".join(repr(float(v)) for v in length) + "]"


_CONVERT = (
    ((SVC, NuSVC), _svc),
    ((SVR, NuSVR), _machine("svr")),
    ((OneClassSVM,), _machine("one-class-svm")),
    ((KernelRidge,), _kernel_ridge),
    ((GaussianProcessRegressor,), _gaussian_process),
    ((Ridge,), _ridge),
    ((LogisticRegression,), _logistic),
)
