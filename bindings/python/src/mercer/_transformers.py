"""Transformers: features of kernels and of texts, and centered kernels."""

import inspect
import json
import numbers
import warnings

import numpy as np
from scipy.linalg import eigh
from scipy.sparse import issparse
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.metrics.pairwise import pairwise_kernels
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from ._estimator import validate_data
from ._kernels import kernel_text, number
from ._library import dense
from ._model import Model
from ._systems import cosines, gram, solve, text_gram, tfidf

_KERNEL = """kernel : str or callable, default={kernel}
        "linear", "rbf", "laplacian", "poly", "sigmoid", "cosine" or "chi2", as in scikit-learn; a
        kernel in Mercer's notation, such as "matern52(sigma=2) + 0.1*linear()"{precomputed}; or a
        function of two rows, which Python calls for each pair.
    gamma : float > 0, "scale", "auto" or None, default=None
        The γ of rbf, laplacian, poly, sigmoid and chi2. None and "auto" mean 1/n_features (for
        chi2: 1), "scale" means 1/(n_features·X.var()).
    degree : int ≥ 1, default=3
        The degree of poly.
    coef0 : float ≥ 0, default=1
        The constant term of poly and sigmoid."""
_ATTRIBUTES = """n_features_in_ : int
        The number of features.
    feature_names_in_ : ndarray of str
        The names of the features, if the columns of X have names.
"""


def _documented(cls):
    """Completes the docstring of a transformer."""
    kernel = inspect.signature(cls).parameters["kernel"].default
    precomputed = ';\n        "precomputed", for which X has the kernel values' if cls._precomputed else ""
    cls.__doc__ = cls.__doc__.replace("KERNEL", _KERNEL.format(kernel=f'"{kernel}"', precomputed=precomputed)).replace("ATTRIBUTES\n", _ATTRIBUTES)
    return cls


class _KernelTransformer(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """What the transformers share. A subclass has the arguments kernel, gamma, degree and coef0."""

    _precomputed = True  # whether kernel may be "precomputed"

    def _pairwise(self):
        return self._precomputed and self.kernel == "precomputed"

    if hasattr(BaseEstimator, "__sklearn_tags__"):

        def __sklearn_tags__(self):
            tags = super().__sklearn_tags__()
            tags.input_tags.pairwise, tags.input_tags.sparse = self._pairwise(), True
            return tags

    else:

        def _more_tags(self):
            return {"pairwise": self._pairwise()}

    def _samples(self, X, fit):
        """Validates X. A sparse X stays sparse unless the kernel is precomputed."""
        X = validate_data(self, X, accept_sparse=False if self._pairwise() else "csr", dtype=np.float64, reset=fit)
        if fit and self._pairwise() and X.shape[0] != X.shape[1]:
            raise ValueError(f"a precomputed kernel needs the square matrix of its values, got {X.shape[0]}×{X.shape[1]}")
        return X

    def _text(self, X):
        """The text of the kernel for samples like X, or None for values that Python computes."""
        if self.kernel is None:
            raise ValueError("kernel must be a name, the text of a kernel or a function of two rows, got None")
        if self.kernel == "precomputed" and not self._precomputed:
            raise ValueError(f"{type(self).__name__} needs the features of samples: kernel must not be 'precomputed'")
        text = kernel_text(self.kernel, self.gamma, self.degree, self.coef0, X)
        return None if text == "precomputed()" else text

    def _values(self, text, X, Z=None, V=None):
        """k(X, Z), or its product with V, for the text that _text returned; k(X, X) if Z is None."""
        if text is not None:
            if Z is not None and issparse(X) != issparse(Z):
                X, Z = dense(X), dense(Z)
            return gram(text, X, Z, V)
        K = X if self._pairwise() else pairwise_kernels(X, Z, metric=self.kernel)
        return K if V is None else K @ V


@_documented
class MercerNystroem(_KernelTransformer):
    """Nyström features, whose inner products approximate a kernel.

    With the same random_state the features are those of scikit-learn's Nystroem.

    Parameters
    ----------
    KERNEL
    n_components : int ≥ 1, default=100
        The number of features.
    components : array-like of shape (n_components, n_features), default=None
        The centers, which need not be samples. None means that samples are drawn; otherwise
        n_components is not used.
    random_state : int, RandomState instance or None, default=None
        The seed of the choice of samples; None means another choice at each fit.

    Attributes
    ----------
    components_ : ndarray or sparse matrix of shape (n_components, n_features)
        The centers.
    component_indices_ : ndarray of int
        The indices of the centers among the samples; not set if components were given.
    normalization_ : ndarray of shape (n_components, n_components)
        The inverse root of the kernel matrix of the centers.
    kernel_ : str or None
        The kernel of the fit in Mercer's notation; None for a function.
    ATTRIBUTES

    See Also
    --------
    sklearn.kernel_approximation.Nystroem : The same features.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import MercerNystroem
    >>> X = np.linspace(0, 1, 20).reshape(-1, 1)
    >>> Z = MercerNystroem("matern32(sigma=1)", n_components=5, random_state=0).fit_transform(X)
    >>> Z.shape, float(abs(Z[0] @ Z[0] - 1)) < 0.05
    ((20, 5), True)
    """

    _precomputed = False

    def __init__(self, kernel="rbf", *, gamma=None, degree=3, coef0=1, n_components=100, components=None, random_state=None):
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.n_components = n_components
        self.components = components
        self.random_state = random_state

    @property
    def _n_features_out(self):
        return self.components_.shape[0]

    def fit(self, X, y=None):
        """Chooses the centers and computes the normalization.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The samples.
        y : object, default=None
            Not used.

        Returns
        -------
        self : object
        """
        X = self._samples(X, True)
        self.__dict__.pop("component_indices_", None)
        if self.components is None:
            m = _count("n_components", self.n_components)
            if m > X.shape[0]:
                warnings.warn(f"n_components is {m}, but there are only {X.shape[0]} samples: the fit has {X.shape[0]} components")
                m = X.shape[0]
            self.component_indices_ = check_random_state(self.random_state).permutation(X.shape[0])[:m]
            self.components_ = X[self.component_indices_]
        else:
            self.components_ = self._given(X)
        self.kernel_ = self._text(X)
        U, s, V = np.linalg.svd(self._values(self.kernel_, self.components_))
        self.normalization_ = np.dot(U / np.sqrt(np.maximum(s, 1e-12)), V)
        return self

    def _given(self, X):
        """The given components as an array."""
        C = np.array(self.components, dtype=np.float64)
        if C.ndim != 2 or C.shape[1] != X.shape[1]:
            raise ValueError(f"components has the shape {C.shape}: it must have {X.shape[1]} columns, as X")
        if len(C) == 0:
            raise ValueError("components has no rows: give at least one center")
        if not np.isfinite(C).all():
            raise ValueError("components must be finite numbers")
        return C

    def transform(self, X):
        """Returns the features k(X, components_) · normalization_ᵀ.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The samples.

        Returns
        -------
        Z : ndarray of shape (n_samples, n_components)
            The features.
        """
        check_is_fitted(self)
        X = self._samples(X, False)
        return self._values(self.kernel_, X, self.components_, np.ascontiguousarray(self.normalization_.T))


class _Texts:
    """What the transformers of texts share."""

    if hasattr(BaseEstimator, "__sklearn_tags__"):

        def __sklearn_tags__(self):
            tags = super().__sklearn_tags__()
            tags.input_tags.string, tags.input_tags.two_d_array, tags.input_tags.sparse = True, False, False
            return tags

    else:

        def _more_tags(self):
            return {"X_types": ["string"]}

    def _samples(self, X, fit):
        """The texts as an array of objects."""
        if isinstance(X, str):
            raise ValueError("X is one text: give a list of texts")
        texts = list(X)
        wrong = next((i for i, text in enumerate(texts) if not isinstance(text, str)), None)
        if wrong is not None:
            raise ValueError(f"X must be a list of texts: element {wrong} is a {type(texts[wrong]).__name__}")
        if fit and not texts:
            raise ValueError("X has no texts")
        out = np.empty(len(texts), dtype=object)
        out[:] = texts
        return out


class MercerTextNystroem(_Texts, MercerNystroem):
    """Nyström features of texts or trees, whose inner products approximate a kernel of texts.

    With these features, every estimator for vectors works on texts. If each different text is a
    center, the inner products of the features are the values of the kernel.

    Parameters
    ----------
    kernel : str, default="spectrum(length=3)"
        A kernel of texts or of trees in Mercer's notation, such as "subsequence(length=3,decay=0.5)";
        sums and multiples are allowed. ``about()["kernels"]`` lists them.
    n_components : int ≥ 1, default=100
        The number of features.
    components : list of str, default=None
        The texts that are the centers. None means that samples are drawn; otherwise n_components is
        not used.
    random_state : int, RandomState instance or None, default=None
        The seed of the choice of samples; None means another choice at each fit.

    Attributes
    ----------
    components_ : ndarray of shape (n_components,)
        The centers.
    component_indices_ : ndarray of int
        The indices of the centers among the samples; not set if components were given.
    normalization_ : ndarray of shape (n_components, n_components)
        The inverse root of the kernel matrix of the centers.
    kernel_ : str
        The kernel.

    Examples
    --------
    >>> from mercer import MercerTextNystroem
    >>> texts = ["the cat sat", "the cat ran", "a dog barked"]
    >>> Z = MercerTextNystroem("spectrum(length=2)", n_components=3, random_state=0).fit_transform(texts)
    >>> Z.shape, bool(Z[0] @ Z[1] > Z[0] @ Z[2])
    ((3, 3), True)
    """

    def __init__(self, kernel="spectrum(length=3)", *, n_components=100, components=None, random_state=None):
        self.kernel = kernel
        self.n_components = n_components
        self.components = components
        self.random_state = random_state

    def _given(self, X):
        return self._samples(self.components, True)

    def _text(self, X):
        if not isinstance(self.kernel, str):
            raise ValueError(f"kernel must be the text of a kernel of texts, got {self.kernel!r}")
        return self.kernel

    def _values(self, text, X, Z=None, V=None):
        K = text_gram(text, list(X), None if Z is None else list(Z))
        return K if V is None else K @ V


class MercerTextTfidf(_Texts, TransformerMixin, BaseEstimator):
    """The n-grams of texts as features, weighted by tf-idf, as the flag ``--tfidf`` of ``mercer fit`` makes them.

    The feature of an n-gram is tf·(log((1 + n)/(1 + df)) + 1), where tf is the number of times that
    the n-gram occurs in the text, n is the number of texts of the fit, and df is the number of them with
    the n-gram. Each text is divided by its norm. The features equal those of scikit-learn's
    TfidfVectorizer with the same parameters up to rounding.

    Parameters
    ----------
    analyzer : {"word", "char", "char_wb"}, default="word"
        The n-grams are of words, of characters, or of characters inside words.
    ngram_range : tuple of int, default=(1, 1)
        The smallest and the largest n, from 1 to 20.
    min_df : int ≥ 1 or float from 0 to 1, default=1
        The number or the share of the texts in which an n-gram must occur.
    max_features : int ≥ 1, default=None
        The number of n-grams: the most frequent in all texts are selected. None means all n-grams.
    sublinear_tf : bool, default=False
        Whether 1 + log(tf) replaces tf.
    lowercase : bool, default=True
        Whether texts are converted to lower case.
    sparse_output : bool, default=True
        Whether transform returns a sparse matrix. ``set_output(transform="pandas")`` needs False.

    Attributes
    ----------
    vocabulary_ : dict
        The column of each n-gram. The columns are in the order of the code points of the n-grams.

    See Also
    --------
    sklearn.feature_extraction.text.TfidfVectorizer : The same features.

    Examples
    --------
    >>> from mercer import MercerTextTfidf
    >>> t = MercerTextTfidf("char_wb", ngram_range=(3, 3)).fit(["ridge", "bridge"])
    >>> t.get_feature_names_out().tolist()
    [' br', ' ri', 'bri', 'dge', 'ge ', 'idg', 'rid']
    >>> t.transform(["rid"]).toarray().round(2).tolist()
    [[0.0, 0.81, 0.0, 0.0, 0.0, 0.0, 0.58]]
    """

    def __init__(self, analyzer="word", *, ngram_range=(1, 1), min_df=1, max_features=None, sublinear_tf=False, lowercase=True, sparse_output=True):
        self.analyzer = analyzer
        self.ngram_range = ngram_range
        self.min_df = min_df
        self.max_features = max_features
        self.sublinear_tf = sublinear_tf
        self.lowercase = lowercase
        self.sparse_output = sparse_output

    def fit(self, X, y=None):
        """Learns the n-grams of texts.

        Parameters
        ----------
        X : list of str
            The texts.
        y : object, default=None
            Not used.

        Returns
        -------
        self : object
        """
        self._learn(X)
        return self

    def fit_transform(self, X, y=None):
        """Learns the n-grams of texts and returns the features.

        Parameters
        ----------
        X : list of str
            The texts.
        y : object, default=None
            Not used.

        Returns
        -------
        Z : sparse matrix or ndarray of shape (n_samples, n_features)
            The features.
        """
        return self._output(self._learn(X))

    def _learn(self, X):
        texts = self._samples(X, True)
        first, last = (_count("ngram_range", n) for n in self.ngram_range)
        shared = isinstance(self.min_df, numbers.Real) and not isinstance(self.min_df, numbers.Integral)
        if not isinstance(self.min_df, numbers.Real) or shared and not 0 <= self.min_df <= 1:
            raise ValueError(f"min_df must be an integer ≥ 1 or a share from 0 to 1, got {self.min_df!r}")
        settings = {"analyzer": self.analyzer, "min_n": first, "max_n": last, "min_df": len(texts) if shared and self.min_df == 1 else self.min_df,
                    "max_features": 0 if self.max_features is None else _count("max_features", self.max_features),
                    "sublinear": bool(self.sublinear_tf), "keep_case": not self.lowercase}
        Z, self._learned = tfidf(json.dumps(settings), list(texts), True)
        self.vocabulary_ = {gram: i for i, gram in enumerate(json.loads(self._learned)["grams"])}
        return Z

    def _output(self, Z):
        return Z if self.sparse_output else dense(Z)

    def transform(self, X):
        """Returns the features of texts.

        Parameters
        ----------
        X : list of str
            The texts. A text without an n-gram of the fit has features of 0.

        Returns
        -------
        Z : sparse matrix or ndarray of shape (n_samples, n_features)
            The features.
        """
        check_is_fitted(self)
        return self._output(tfidf(self._learned, list(self._samples(X, True)), False)[0])

    def get_feature_names_out(self, input_features=None):
        """Returns the n-grams in the order of the columns.

        Parameters
        ----------
        input_features : object, default=None
            Not used.

        Returns
        -------
        names : ndarray of str
            The n-grams.
        """
        check_is_fitted(self)
        return np.array(list(self.vocabulary_), dtype=object)


# The number of frequencies that the library draws at a time.
_PART = 512


@_documented
class MercerRBFSampler(_KernelTransformer):
    """Random Fourier features √(2h/m) cos(ωᵀx + b), whose inner products approximate a kernel.

    With kernel="rbf" and the same random_state the features are those of scikit-learn's
    RBFSampler. For another kernel the library draws the frequencies ω, in orthogonal blocks
    where the kernel allows it; h is k(x, x).

    Parameters
    ----------
    kernel : str, default="rbf"
        "rbf" or "laplacian", as in scikit-learn; or in Mercer's notation a Gaussian, Laplacian,
        exponential, Matérn or rational quadratic kernel, or a sum or product of them, also on
        groups of columns, such as "columns(0-1, matern52(sigma=2)) * columns(2, laplacian(sigma=1))".
    gamma : float > 0, "scale", "auto" or None, default=1.0
        The γ of rbf and laplacian. None and "auto" mean 1/n_features, "scale" means
        1/(n_features·X.var()).
    n_components : int ≥ 1, default=100
        The number of features.
    random_state : int, RandomState instance or None, default=None
        The seed of the frequencies; None means others at each fit.

    Attributes
    ----------
    random_weights_ : ndarray of shape (n_features, n_components)
        The frequencies.
    random_offset_ : ndarray of shape (n_components,)
        The offsets b, uniform from 0 to 2π.
    kernel_ : str
        The kernel of the fit in Mercer's notation.
    ATTRIBUTES

    See Also
    --------
    sklearn.kernel_approximation.RBFSampler : The features of the Gaussian kernel.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import MercerRBFSampler
    >>> X = np.array([[0.0, 1], [1, 1]])
    >>> Z = MercerRBFSampler("laplacian", n_components=5000, random_state=0).fit_transform(X)
    >>> float(abs(Z[0] @ Z[1] - np.exp(-1))) < 0.1
    True
    """

    _precomputed = False
    degree, coef0 = 3, 1

    def __init__(self, kernel="rbf", *, gamma=1.0, n_components=100, random_state=None):
        self.kernel = kernel
        self.gamma = gamma
        self.n_components = n_components
        self.random_state = random_state

    @property
    def _n_features_out(self):
        return self.random_weights_.shape[1]

    def fit(self, X, y=None):
        """Draws the frequencies and the offsets.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The samples.
        y : object, default=None
            Not used.

        Returns
        -------
        self : object
        """
        X = self._samples(X, True)
        d, m = X.shape[1], _count("n_components", self.n_components)
        if not isinstance(self.kernel, str):
            raise ValueError(f"kernel must be a name or the text of a kernel, got {self.kernel!r}")
        self.kernel_ = self._text(X)
        state = check_random_state(self.random_state)
        if self.kernel == "rbf":
            gamma = float(self.kernel_[len("gaussian(gamma="):-1])
            self.random_weights_ = (2.0 * gamma) ** 0.5 * state.normal(size=(d, m))
        else:  # a fit to two samples draws the frequencies; its memory grows with the square of their number
            parts = [Model.fit("fourier-ridge", np.vstack([np.zeros(d), np.ones(d)]), np.array([[0.0], [1.0]]), parameters={
                "kernel": self.kernel_, "features": 2 * min(_PART, m - first), "seed": int(state.randint(1 << 31)), "intercept": False}).array("frequencies")
                for first in range(0, m, _PART)]
            self.random_weights_ = np.ascontiguousarray(np.vstack(parts).T)
        self.random_offset_ = state.uniform(0, 2 * np.pi, size=m)
        origin = np.zeros((1, d))
        self._height = float(gram(self.kernel_, origin, origin)[0, 0])
        return self

    def transform(self, X):
        """Returns the features.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The samples.

        Returns
        -------
        Z : ndarray of shape (n_samples, n_components)
            The features.
        """
        check_is_fitted(self)
        X = self._samples(X, False)
        factor = (2.0 * self._height / len(self.random_offset_)) ** 0.5
        if not issparse(X):
            return cosines(factor, X, self.random_weights_, self.random_offset_)
        Z = np.asarray(X @ self.random_weights_)
        Z += self.random_offset_
        np.cos(Z, Z)
        Z *= factor
        return Z


@_documented
class MercerKernelCenterer(_KernelTransformer):
    """The values of a kernel for samples that are centered in its feature space.

    With ``kernel="precomputed"`` the values are those of scikit-learn's KernelCenterer. With
    another kernel the fit and transform take samples.

    Parameters
    ----------
    KERNEL

    Attributes
    ----------
    K_fit_rows_ : ndarray of shape (n_samples,)
        The mean of each column of the kernel matrix of the fit.
    K_fit_all_ : float
        The mean of this matrix.
    X_fit_ : ndarray or sparse matrix of shape (n_samples, n_features), or None
        The samples of the fit; None for a precomputed kernel.
    kernel_ : str or None
        The kernel of the fit in Mercer's notation; None for a function and precomputed values.
    ATTRIBUTES

    See Also
    --------
    sklearn.preprocessing.KernelCenterer : The same for precomputed values.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import MercerKernelCenterer
    >>> X = np.array([[1.0], [2], [6]])
    >>> MercerKernelCenterer("linear").fit_transform(X).round(12).tolist()
    [[4.0, 2.0, -6.0], [2.0, 1.0, -3.0], [-6.0, -3.0, 9.0]]
    """

    def __init__(self, kernel="precomputed", *, gamma=None, degree=3, coef0=1):
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0

    @property
    def _n_features_out(self):
        return len(self.K_fit_rows_)

    def fit(self, X, y=None):
        """Computes the means of the kernel matrix.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The samples, or the (n_samples, n_samples) matrix of a precomputed kernel.
        y : object, default=None
            Not used.

        Returns
        -------
        self : object
        """
        X = self._samples(X, True)
        self.kernel_ = self._text(X)
        self.X_fit_ = None if self._pairwise() else X
        self._means(self._values(self.kernel_, X))
        return self

    def _means(self, K):
        self.K_fit_rows_ = K.sum(axis=0) / len(K)
        self.K_fit_all_ = self.K_fit_rows_.sum() / len(K)

    def _centered(self, K):
        return K - self.K_fit_rows_ - (K.sum(axis=1) / K.shape[1])[:, None] + self.K_fit_all_

    def transform(self, X):
        """Returns the centered kernel values of samples and the samples of fit.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The samples; for a precomputed kernel, its values between these samples and the
            samples of fit.

        Returns
        -------
        K : ndarray of shape (n_samples, n_samples_fit)
            The centered values.
        """
        check_is_fitted(self)
        return self._centered(self._values(self.kernel_, self._samples(X, False), self.X_fit_))


@_documented
class MercerKernelPCA(_KernelTransformer):
    """Kernel principal component analysis.

    The components are those of scikit-learn's KernelPCA with eigen_solver="dense", up to rounding.

    Parameters
    ----------
    n_components : int ≥ 1 or None, default=None
        The number of components; None means all whose eigenvalue is not 0.
    KERNEL
    alpha : float ≥ 0, default=1.0
        The penalty of the ridge regression that learns inverse_transform.
    fit_inverse_transform : bool, default=False
        Learn inverse_transform in fit.

    Attributes
    ----------
    eigenvalues_ : ndarray of shape (n_components,)
        The largest eigenvalues of the centered kernel matrix, in descending order.
    eigenvectors_ : ndarray of shape (n_samples, n_components)
        Their eigenvectors, of norm 1.
    X_fit_ : ndarray or sparse matrix of shape (n_samples, n_features), or None
        The samples of the fit; None for a precomputed kernel.
    dual_coef_ : ndarray of shape (n_samples, n_features)
        The coefficients of inverse_transform, if the fit has learned it.
    X_transformed_fit_ : ndarray of shape (n_samples, n_components)
        The components of the samples of the fit, if the fit has learned inverse_transform.
    kernel_ : str or None
        The kernel of the fit in Mercer's notation; None for a function and precomputed values.
    ATTRIBUTES

    See Also
    --------
    sklearn.decomposition.KernelPCA : The same components.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import MercerKernelPCA
    >>> X = np.array([[1.0, 0], [2, 0], [6, 0]])
    >>> MercerKernelPCA(1).fit_transform(X).round(12).ravel().tolist()
    [-2.0, -1.0, 3.0]
    """

    def __init__(self, n_components=None, *, kernel="linear", gamma=None, degree=3, coef0=1, alpha=1.0, fit_inverse_transform=False):
        self.n_components = n_components
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.alpha = alpha
        self.fit_inverse_transform = fit_inverse_transform

    @property
    def _n_features_out(self):
        return len(self.eigenvalues_)

    def fit(self, X, y=None):
        """Computes the components.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The samples, or the (n_samples, n_samples) matrix of a precomputed kernel.
        y : object, default=None
            Not used.

        Returns
        -------
        self : object
        """
        if self.n_components is not None:
            _count("n_components", self.n_components)
        if self.fit_inverse_transform and not isinstance(self.kernel, str) or self.fit_inverse_transform and self.kernel == "precomputed":
            raise ValueError("fit_inverse_transform needs a kernel that the library computes")
        X = self._samples(X, True)
        n = X.shape[0]
        self.kernel_ = self._text(X)
        self.X_fit_ = None if self._pairwise() else X
        self._centerer = MercerKernelCenterer()
        K = self._values(self.kernel_, X)
        self._centerer._means(K)
        count = n if self.n_components is None else min(n, self.n_components)
        values, vectors = eigh(self._centerer._centered(K), subset_by_index=(n - count, n - 1))
        largest = max(values[-1], 0.0)
        if values[0] < -1e-5 * largest or values[0] < -1e-5 and largest == 0:
            raise ValueError(f"the kernel is not positive semi-definite: an eigenvalue of its centered matrix is {values[0]:.3g}, the largest is {values[-1]:.3g}")
        values[values < 1e-12 * largest] = 0
        signs = np.sign(vectors[np.abs(vectors).argmax(axis=0), range(count)])
        self.eigenvalues_, self.eigenvectors_ = values[::-1], (vectors * signs)[:, ::-1]
        if self.n_components is None:
            kept = self.eigenvalues_ > 0
            self.eigenvalues_, self.eigenvectors_ = self.eigenvalues_[kept], self.eigenvectors_[:, kept]
        if self.fit_inverse_transform:
            self.X_transformed_fit_ = T = self.eigenvectors_ * np.sqrt(self.eigenvalues_)
            self.dual_coef_ = solve(T, dense(X), alpha=number("alpha", self.alpha), kernel=self._text(T))
        return self

    def fit_transform(self, X, y=None):
        """Computes the components and returns those of the samples of the fit.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The samples, or the (n_samples, n_samples) matrix of a precomputed kernel.
        y : object, default=None
            Not used.

        Returns
        -------
        Z : ndarray of shape (n_samples, n_components)
            The components of the samples.
        """
        self.fit(X)
        return self.eigenvectors_ * np.sqrt(self.eigenvalues_)

    def transform(self, X):
        """Returns the components of samples.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The samples; for a precomputed kernel, its values between these samples and the
            samples of fit.

        Returns
        -------
        Z : ndarray of shape (n_samples, n_components)
            The components.
        """
        check_is_fitted(self)
        X = self._samples(X, False)
        scaled = np.zeros_like(self.eigenvectors_)
        used = self.eigenvalues_ > 0
        scaled[:, used] = self.eigenvectors_[:, used] / np.sqrt(self.eigenvalues_[used])
        # The product of K with a further column, 1/n, gives the means of the rows of K for the centering.
        n, t = scaled.shape
        products = self._values(self.kernel_, X, self.X_fit_, np.column_stack([scaled, np.full(n, 1 / n)]))
        sums, means = scaled.sum(axis=0), self._centerer
        return products[:, :t] - np.outer(products[:, t], sums) - means.K_fit_rows_ @ scaled + means.K_fit_all_ * sums

    def inverse_transform(self, X):
        """Returns samples whose components are approximately X, by kernel ridge regression.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_components)
            The components.

        Returns
        -------
        X_original : ndarray of shape (n_samples, n_features)
            The samples.
        """
        check_is_fitted(self)
        if not self.fit_inverse_transform:
            raise ValueError("inverse_transform needs a fit with fit_inverse_transform=True")
        text = self._text(self.X_transformed_fit_)
        return gram(text, np.asarray(X, dtype=np.float64), self.X_transformed_fit_, self.dual_coef_)


def _count(name, value):
    """value as an int ≥ 1."""
    if not isinstance(value, (int, np.integer)) or isinstance(value, bool) or value < 1:
        raise ValueError(f"{name} must be an integer ≥ 1, got {value!r}")
    return int(value)
