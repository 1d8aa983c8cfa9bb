"""Compares the transformers with those of scikit-learn."""

import pickle
import unittest
import warnings

from . import support
import numpy as np
import sklearn
from scipy.sparse import csr_matrix
from sklearn.base import clone
from sklearn.decomposition import KernelPCA
from sklearn.kernel_approximation import Nystroem, RBFSampler
from sklearn.linear_model import Ridge
from sklearn.metrics.pairwise import pairwise_kernels
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import KernelCenterer
from sklearn.utils.estimator_checks import check_estimator

import mercer
from mercer._systems import gram

TRANSFORMERS = [
    mercer.MercerNystroem(),
    mercer.MercerNystroem("matern52(sigma=2)", n_components=5),
    mercer.MercerRBFSampler(),
    mercer.MercerRBFSampler("laplacian", n_components=7),
    mercer.MercerKernelPCA(),
    mercer.MercerKernelPCA(2, kernel="rbf", fit_inverse_transform=True),
    mercer.MercerKernelCenterer(),
    mercer.MercerKernelCenterer("rbf"),
]
KERNELS = [{"kernel": "rbf", "gamma": 0.2}, {"kernel": "rbf"}, {"kernel": "poly", "degree": 2, "coef0": 1, "gamma": 0.5}, {"kernel": "cosine"},
           {"kernel": "sigmoid", "gamma": 0.01, "coef0": 0.1}, {"kernel": "linear"}]


class TestTransformers(unittest.TestCase):
    def setUp(self):
        r = support.rng(self)
        self.X, self.y = support.smooth(r, 60, 4)
        self.new = r.normal(size=(20, 4))

    def near(self, got, want, condition=1.0):
        """Both programs have errors of about n units times the size and the condition."""
        np.testing.assert_allclose(got, want, rtol=0, atol=100 * len(self.X) * support.U * condition * np.abs(want).max())

    def test_checks(self):
        for t in TRANSFORMERS:
            with self.subTest(transformer=t), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                check_estimator(t)

    def test_nystroem(self):
        for given in KERNELS:
            for X, new in [(self.X, self.new), (csr_matrix(self.X), csr_matrix(self.new))]:
                with self.subTest(kernel=given, sparse=X is not self.X):
                    want = Nystroem(n_components=12, random_state=3, **given).fit(X)
                    got = mercer.MercerNystroem(n_components=12, random_state=3, **given).fit(X)
                    np.testing.assert_array_equal(got.component_indices_, want.component_indices_)
                    # Where the kernel matrix is singular, the root of 1e-12 multiplies rounding errors by 1e6, in
                    # directions in which k(X, components) is as small: the kernel's values agree, not the features.
                    a, b = got.transform(new), want.transform(new)
                    s = np.linalg.svd(pairwise_kernels(want.components_, metric=given["kernel"], filter_params=True, **{k: v for k, v in given.items() if k != "kernel"}), compute_uv=False)
                    self.near(a, b, s[0] / s[-1]) if s[-1] > 1e-6 * s[0] else np.testing.assert_allclose(a @ a.T, b @ b.T, atol=1e-5 * np.abs(b @ b.T).max())

    def test_given_components(self):
        C = self.X[:9]
        t = mercer.MercerNystroem("rbf", gamma=0.3, components=C).fit(self.X)
        values = pairwise_kernels(self.new, C, metric="rbf", gamma=0.3)
        inner = np.linalg.inv(pairwise_kernels(C, metric="rbf", gamma=0.3))
        Z = t.transform(self.new)
        self.near(Z @ Z.T, values @ inner @ values.T, np.linalg.cond(inner))
        self.assertFalse(hasattr(t, "component_indices_"))

    def test_sampler(self):
        for gamma in (0.3, 1.0):
            want = RBFSampler(gamma=gamma, n_components=30, random_state=5).fit(self.X)
            got = mercer.MercerRBFSampler(gamma=gamma, n_components=30, random_state=5).fit(self.X)
            np.testing.assert_array_equal(got.random_offset_, want.random_offset_)
            self.near(got.transform(self.new), want.transform(self.new))

    def test_other_spectra(self):
        """Checks that inner products tend to the kernel: m cosines of variance at most h² each have a
        mean within five standard deviations."""
        m = 20_000
        for kernel, h in [("laplacian", 1), ("2*matern32(sigma=2)", 2), ("columns([0,2],gaussian(sigma=1))*columns(1,laplacian(sigma=2))", 1)]:
            with self.subTest(kernel=kernel):
                Z = mercer.MercerRBFSampler(kernel, n_components=m, random_state=1).fit_transform(self.X[:8])
                if kernel == "laplacian":
                    K = pairwise_kernels(self.X[:8], metric="laplacian", gamma=1.0)
                elif "columns" in kernel:
                    x = self.X[:8]
                    K = pairwise_kernels(x[:, [0, 2]], metric="rbf", gamma=0.5) * pairwise_kernels(x[:, [1]], metric="laplacian", gamma=0.5)
                else:
                    r = np.sqrt(3) * np.linalg.norm(self.X[:8, None] - self.X[None, :8], axis=2) / 2
                    K = 2 * (1 + r) * np.exp(-r)
                self.assertLess(np.abs(Z @ Z.T - K).max(), 5 * 1.5 * h / np.sqrt(m))

    def test_pca(self):
        for given in KERNELS:
            if given["kernel"] == "sigmoid":
                continue
            for count in (3, None):
                with self.subTest(kernel=given, components=count):
                    want = KernelPCA(count, eigen_solver="dense", **given).fit(self.X)
                    got = mercer.MercerKernelPCA(count, **given).fit(self.X)
                    self.near(got.eigenvalues_, want.eigenvalues_)
                    n = min(3, len(want.eigenvalues_))
                    gap = want.eigenvalues_[0] / -np.diff(want.eigenvalues_[: n + 1]).max() if len(want.eigenvalues_) > n else 1
                    gap = max(gap, want.eigenvalues_[0] / np.abs(np.diff(want.eigenvalues_[: n + 1])).min())
                    for a, b in [(got.transform(self.new), want.transform(self.new)), (got.fit_transform(self.X), want.fit_transform(self.X))]:
                        a, b = a[:, :n], b[:, :n]
                        self.near(a * np.sign((a * b).sum(axis=0)), b, gap)

    def test_pca_precomputed_and_function(self):
        K, k = pairwise_kernels(self.X, metric="rbf", gamma=0.2), pairwise_kernels(self.new, self.X, metric="rbf", gamma=0.2)
        want = mercer.MercerKernelPCA(4, kernel="rbf", gamma=0.2).fit(self.X).transform(self.new)
        self.near(mercer.MercerKernelPCA(4, kernel="precomputed").fit(K).transform(k), want, 1e3)
        self.near(mercer.MercerKernelPCA(4, kernel=lambda a, b: np.exp(-0.2 * ((a - b) ** 2).sum())).fit(self.X).transform(self.new), want, 1e3)

    def test_same_memory(self):
        """Checks the kernel values of samples with themselves, whose matrix is symmetric, and their products."""
        K = pairwise_kernels(self.X, metric="rbf", gamma=0.2)
        V = np.random.default_rng(1).normal(size=(len(K), 40))
        for X in (self.X, csr_matrix(self.X)):
            for Z in (None, X):
                self.near(gram("gaussian(gamma=0.2)", X, Z), K)
                for t in (3, 40):
                    self.near(gram("gaussian(gamma=0.2)", X, Z, np.ascontiguousarray(V[:, :t])), K @ V[:, :t], 10)

    def test_pca_inverse(self):
        given = {"n_components": 3, "kernel": "rbf", "gamma": 0.1, "alpha": 0.1, "fit_inverse_transform": True}
        want, got = KernelPCA(eigen_solver="dense", **given).fit(self.X), mercer.MercerKernelPCA(**given).fit(self.X)
        # The condition of K + alpha I is at most 60/0.1; mercer.solve stops at a residual of 1e-8.
        a = got.inverse_transform(got.transform(self.new))
        np.testing.assert_allclose(a, want.inverse_transform(want.transform(self.new)), atol=1e-8 * 600 * np.abs(a).max())

    def test_pca_refuses_indefinite(self):
        with self.assertRaisesRegex(ValueError, "not positive semi-definite: an eigenvalue"):
            mercer.MercerKernelPCA(kernel="precomputed").fit(np.array([[0.0, 5, 0], [5, 0, 0], [0, 0, 1]]))

    def test_centerer(self):
        K, k = pairwise_kernels(self.X, metric="rbf", gamma=0.2), pairwise_kernels(self.new, self.X, metric="rbf", gamma=0.2)
        want = KernelCenterer().fit(K)
        for got, X, new in [(mercer.MercerKernelCenterer(), K, k), (mercer.MercerKernelCenterer("rbf", gamma=0.2), self.X, self.new),
                            (mercer.MercerKernelCenterer("rbf", gamma=0.2), csr_matrix(self.X), csr_matrix(self.new))]:
            self.near(got.fit_transform(X), want.transform(K))
            self.near(got.transform(new), want.transform(k))

    def test_names_and_frames(self):
        """Checks get_feature_names_out, and pandas frames where pandas is installed."""
        for t, n in [(mercer.MercerNystroem(n_components=3), 3), (mercer.MercerRBFSampler(n_components=3), 3),
                     (mercer.MercerKernelPCA(2, kernel="rbf"), 2), (mercer.MercerKernelCenterer("rbf"), 60)]:
            t = clone(t).fit(self.X)
            names = [f"{type(t).__name__.lower()}{i}" for i in range(n)]
            self.assertEqual(t.get_feature_names_out().tolist(), names)
            try:
                import pandas
            except ImportError as err:
                support.absent("pandas", str(err))
            frame = pandas.DataFrame(self.X, columns=list("abcd"))
            out = clone(t).set_output(transform="pandas").fit(frame).transform(frame)
            self.assertEqual(out.columns.tolist(), names)
            np.testing.assert_array_equal(clone(t).fit(frame).feature_names_in_, list("abcd"))

    def test_pipelines_and_pickles(self):
        for t in TRANSFORMERS[:6]:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # there are less than 100 samples
                model = make_pipeline(clone(t), Ridge()).fit(self.X, self.y)
            # A pickled array may have another order in memory, so that sums are rounded otherwise.
            self.near(pickle.loads(pickle.dumps(model)).predict(self.new), model.predict(self.new))

    def test_refusals(self):
        for t, want in [
            (mercer.MercerNystroem("precomputed"), "kernel must not be 'precomputed'"),
            (mercer.MercerNystroem(n_components=0), "n_components must be an integer ≥ 1, got 0"),
            (mercer.MercerNystroem(components=[[1.0, 2]]), r"components has the shape \(1, 2\): it must have 4 columns"),
            (mercer.MercerNystroem(components=np.empty((0, 4))), "^components has no rows: give at least one center$"),
            (mercer.MercerNystroem("gausian(sigma=1)"), 'unknown kernel "gausian", did you mean "gaussian"'),
            (mercer.MercerRBFSampler("linear"), "linear"),
            (mercer.MercerKernelPCA(1.5), "n_components must be an integer"),
            (mercer.MercerKernelPCA(kernel="precomputed"), "needs the square matrix"),
            (mercer.MercerKernelCenterer(None), "got None"),
        ]:
            with self.subTest(transformer=t), self.assertRaisesRegex(ValueError, want):
                t.fit(self.X)


if sklearn.__version__ < "1.2":  # set_output is new in 1.2
    del TestTransformers.test_names_and_frames
