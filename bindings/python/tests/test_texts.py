"""Compares features of texts with scikit-learn's counts of n-grams."""

import csv
import os
import pickle
import subprocess
import tempfile
import unittest

from . import support
import numpy as np
import sklearn
from sklearn.base import clone
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer
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

    def test_tfidf(self):
        """Checks that features equal scikit-learn's and those of the command. Logarithm, products and norm have
        errors of a few units in the last place."""
        for given in [{}, {"analyzer": "char_wb", "ngram_range": (2, 4), "min_df": 2}, {"analyzer": "char", "ngram_range": (3, 3), "lowercase": False, "max_features": 40},
                      {"ngram_range": (1, 2), "sublinear_tf": True, "min_df": 0.1}, {"analyzer": "char", "min_df": 1.0}]:
            with self.subTest(given=given):
                want, got = TfidfVectorizer(**given), mercer.MercerTextTfidf(**given)
                a, b = want.fit_transform(self.texts[:25]), got.fit_transform(self.texts[:25])
                self.assertEqual(got.get_feature_names_out().tolist(), want.get_feature_names_out().tolist())
                self.assertEqual(got.vocabulary_, want.vocabulary_)
                np.testing.assert_allclose(b.toarray(), a.toarray(), rtol=0, atol=1e-12)
                new = [*self.texts[20:], "xyz", ""]
                again = pickle.loads(pickle.dumps(got))
                np.testing.assert_allclose(again.transform(new).toarray(), want.transform(new).toarray(), rtol=0, atol=1e-12)
        y = ["kernel" in text for text in self.texts]
        model = make_pipeline(mercer.MercerTextTfidf("char", ngram_range=(3, 6)), SVC(kernel="linear", C=100)).fit(self.texts, y)
        self.assertEqual(list(model.predict(self.texts)), y)
        for t, X, message in [(mercer.MercerTextTfidf("line"), ["ab"], 'the analyzer is "line"'), (mercer.MercerTextTfidf(ngram_range=(2, 1)), ["ab"], "range 2 to 1"),
                              (mercer.MercerTextTfidf(min_df=2), ["ab", "cd"], "no n-gram occurs in at least 2"), (mercer.MercerTextTfidf(min_df=1.5), ["ab"], "min_df must be"),
                              (mercer.MercerTextTfidf(max_features=0), ["ab"], "max_features must be"), (mercer.MercerTextTfidf(), "ab", "X is one text"), (mercer.MercerTextTfidf(), ["a\0b"], r"U\+0000")]:
            with self.assertRaisesRegex(ValueError, message):
                t.fit(X)

    def test_tfidf_of_the_command(self):
        """Checks that a model of the command on texts equals a model of the same learner on the features."""
        if not os.path.exists(support.COMMAND):
            support.absent("command", "bin/mercer is not built: make build")
        y = np.arange(30.0) % 7
        with tempfile.TemporaryDirectory() as folder:
            table, model = os.path.join(folder, "t.csv"), os.path.join(folder, "m.safetensors")
            with open(table, "w", encoding="utf-8", newline="") as f:
                csv.writer(f).writerows([["text", "y"], *zip(self.texts, y.tolist())])
            for args in [["fit", "--quiet", "--learner", "kernel-ridge", "--kernel", "linear()", "--lambda", "0.5", "--no-intercept", "--text", "text", "--tfidf", "char", "--ngrams", "2,3", "--target", "y", "--model", model],
                         ["predict", "--quiet", "--model", model]]:
                done = subprocess.run([support.COMMAND, *args, table], capture_output=True, text=True)
                self.assertEqual(done.returncode, 0, done.stderr)
        Z = mercer.MercerTextTfidf("char", ngram_range=(2, 3)).fit_transform(self.texts)
        want = mercer.MercerKernelRidge(kernel="linear()", alpha=0.5).fit(Z.toarray(), y).predict(Z.toarray())
        # The condition of K + λI is at most 30/0.5, and both residuals are at most 1e-10.
        np.testing.assert_allclose([float(line) for line in done.stdout.split()[1:]], want, rtol=0, atol=1e-8 * np.abs(y).max())

    @unittest.skipIf(sklearn.__version__ < "1.2", "set_output is new in 1.2")
    def test_tfidf_frames(self):
        try:
            import pandas
        except ImportError as err:
            support.absent("pandas", str(err))
        series = pandas.Series(["ridge", "ridge kernel"], index=["p", "q"])
        out = mercer.MercerTextTfidf(sparse_output=False).set_output(transform="pandas").fit_transform(series)
        self.assertEqual((out.columns.tolist(), out.index.tolist()), (["kernel", "ridge"], ["p", "q"]))

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
