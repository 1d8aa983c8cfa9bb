"""Compares features of texts with scikit-learn's counts of n-grams."""

import pickle
import unittest

from . import support
import numpy as np
import sklearn
from sklearn.base import clone
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import normalize
from sklearn.svm import SVC

import mercer


class TestTexts(unittest.TestCase):
    def setUp(self):
        r = support.rng(self)
        words = ["kernel", "machine", "naïve", "ridge", "solver", "matrix", "Gauß"]
        self.texts = [" ".join(r.choice(words, 4)) + f" {i}" for i in range(30)]

    def test_inner_products(self):
        """A component for each text makes the inner products the kernel, which is that of normalized counts."""
        counts = CountVectorizer(analyzer="char", ngram_range=(3, 3), lowercase=False, strip_accents=None).fit_transform(self.texts)
        F = normalize(counts.astype(float))
        want = (F @ F.T).toarray()
        t = mercer.MercerTextNystroem("spectrum(length=3)", n_components=30, random_state=1).fit(self.texts)
        Z = t.transform(self.texts)
        # The root of the kernel matrix multiplies rounding errors by the root of its condition.
        np.testing.assert_allclose(Z @ Z.T, want, atol=30 * support.U * np.linalg.cond(want))
        again = mercer.MercerTextNystroem(components=self.texts[:5]).fit(self.texts)
        self.assertEqual(list(again.components_), self.texts[:5])
        P = again.transform(self.texts)
        K, k = want[:5, :5], want[:, :5]
        np.testing.assert_allclose(P @ P.T, k @ np.linalg.solve(K, k.T), atol=30 * support.U * np.linalg.cond(K))

    def test_pipelines_and_pickles(self):
        y = ["kernel" in text for text in self.texts]
        model = make_pipeline(mercer.MercerTextNystroem("subsequence(length=3,decay=0.5)", n_components=30, random_state=1), SVC(C=100)).fit(self.texts, y)
        self.assertEqual(list(model.predict(self.texts)), y)
        np.testing.assert_array_equal(pickle.loads(pickle.dumps(model)).predict(self.texts), y)
        trees = mercer.MercerTextNystroem("subtree(decay=0.5)", n_components=2, random_state=1)
        self.assertEqual(trees.fit_transform(["(S (NP we) (VP sleep))", "(S (NP they) (VP sleep))"]).shape, (2, 2))

    @unittest.skipIf(sklearn.__version__ < "1.2", "set_output is new in 1.2")
    def test_names_and_frames(self):
        t = mercer.MercerTextNystroem(n_components=3, random_state=1).fit(self.texts)
        names = ["mercertextnystroem0", "mercertextnystroem1", "mercertextnystroem2"]
        self.assertEqual(t.get_feature_names_out().tolist(), names)
        try:
            import pandas
        except ImportError as err:
            support.absent("pandas", str(err))
        series = pandas.Series(self.texts, index=range(100, 130))
        out = clone(t).set_output(transform="pandas").fit(series).transform(series)
        self.assertEqual((out.columns.tolist(), out.index[0]), (names, 100))

    def test_refusals(self):
        for t, X, want in [
            (mercer.MercerTextNystroem(), "one text", "X is one text: give a list of texts"),
            (mercer.MercerTextNystroem(), ["a", 2], "X must be a list of texts: element 1 is a int"),
            (mercer.MercerTextNystroem(), [], "X has no texts"),
            (mercer.MercerTextNystroem(), ["a\0b"], r"U\+0000"),
            (mercer.MercerTextNystroem("rbf"), ["a"], "rbf"),
            (mercer.MercerTextNystroem(None), ["a"], "got None"),
            (mercer.MercerTextNystroem("gaussian(sigma=1)"), ["a"], "gaussian"),
            (mercer.MercerTextNystroem("spectrum(length=0)"), ["a"], "length"),
        ]:
            with self.subTest(transformer=t, X=X), self.assertRaisesRegex(ValueError, want):
                t.set_params(n_components=1).fit(X)
