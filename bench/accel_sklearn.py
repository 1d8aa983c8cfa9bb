"""Times scikit-learn with and without mercer.accel on 24 fixed cases.

    make accel-bench

A case is a fit and its predictions or transforms, as a program calls them. Each case runs once
without being counted and then three times in turns; the time is the median. The seeds and shapes
are those below, and no case is left out. With numbers as arguments only these cases run, and the
others keep their results in bench/accel_sklearn.json, from which bench/results/accel.md is
written.
"""

import json
import os
import platform
import statistics
import sys
import time
import warnings

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")
sys.path.insert(0, os.path.join(ROOT, "bindings", "python", "src"))

import numpy as np  # noqa: E402
import scipy.sparse  # noqa: E402
import sklearn  # noqa: E402
from sklearn import decomposition, gaussian_process, kernel_approximation, kernel_ridge, svm  # noqa: E402
from sklearn.datasets import load_digits, make_classification  # noqa: E402
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Matern, WhiteKernel  # noqa: E402
from sklearn.model_selection import GridSearchCV, cross_val_predict  # noqa: E402

from mercer import accel  # noqa: E402

OWN = {cls.__name__: cls for cls in (kernel_ridge.KernelRidge, svm.SVC, svm.SVR, svm.OneClassSVM, gaussian_process.GaussianProcessRegressor, kernel_approximation.Nystroem, decomposition.KernelPCA)}
MODULES = {"KernelRidge": kernel_ridge, "GaussianProcessRegressor": gaussian_process, "Nystroem": kernel_approximation, "KernelPCA": decomposition}
ROUNDS = 3


def smooth(n, d, targets=1):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(n, d))
    Y = np.sin(X @ rng.normal(size=(d, targets))) + 0.1 * rng.normal(size=(n, targets))
    return X, Y[:, 0] if targets == 1 else Y


def classes(n, d, k):
    return make_classification(n, d, n_informative=d // 2, n_classes=k, class_sep=0.8, random_state=1)


def text(n, d):
    """Sparse counts of 40 of d words a row, and two classes."""
    rng = np.random.default_rng(1)
    rows, words = np.repeat(np.arange(n), 40), (rng.random(40 * n) ** 2 * d).astype(int)
    X = scipy.sparse.csr_matrix((np.ones(40 * n), (rows, words)), shape=(n, d))
    return X, (X @ rng.normal(size=d) + 3 * rng.normal(size=n) > 0).astype(int)


def predicted(name, data, method="predict", **parameters):
    """A case that fits an estimator and predicts for the same number of rows."""

    def run(cls, X, y):
        estimator = cls(**parameters).fit(X, y)
        return getattr(estimator, method)(X)

    return name, data, run


def searched(cls, X, y):
    return GridSearchCV(cls(kernel="rbf", gamma=0.1), {"alpha": [0.01, 0.1, 1.0, 10.0]}, cv=3).fit(X, y).predict(X)


def validated(cls, X, y):
    return cross_val_predict(cls(), X, y, cv=5)


GP = "GaussianProcessRegressor"
CASES = [
    ("kernel ridge, Gaussian, 6000 × 10", *predicted("KernelRidge", lambda: smooth(6000, 10), kernel="rbf", gamma=0.05, alpha=0.1)),
    ("kernel ridge, Gaussian, ten targets, 5000 × 20", *predicted("KernelRidge", lambda: smooth(5000, 20, 10), kernel="rbf", gamma=0.02, alpha=1.0)),
    ("kernel ridge, linear, 4000 × 50", *predicted("KernelRidge", lambda: smooth(4000, 50), alpha=1.0)),
    ("kernel ridge, Laplacian, 4000 × 20", *predicted("KernelRidge", lambda: smooth(4000, 20), kernel="laplacian", gamma=0.05, alpha=0.1)),
    ("kernel ridge, polynomial, 4000 × 20", *predicted("KernelRidge", lambda: smooth(4000, 20), kernel="poly", alpha=1.0)),
    ("kernel ridge, grid search of four penalties, 3000 × 10", "KernelRidge", lambda: smooth(3000, 10), searched),
    ("SVC, Gaussian, two classes, 10,000 × 20", *predicted("SVC", lambda: classes(10000, 20, 2))),
    ("SVC, Gaussian, six classes, 8000 × 16", *predicted("SVC", lambda: classes(8000, 16, 6), C=10.0)),
    ("SVC, Gaussian, digits, 1797 × 64", *predicted("SVC", lambda: load_digits(return_X_y=True))),
    ("SVC, linear, sparse words, 3000 × 5000", *predicted("SVC", lambda: text(3000, 5000), kernel="linear")),
    ("SVC, polynomial, two classes, 6000 × 20", *predicted("SVC", lambda: classes(6000, 20, 2), method="decision_function", kernel="poly")),
    ("SVC, five-fold cross-validation, 5000 × 20", "SVC", lambda: classes(5000, 20, 2), validated),
    ("SVR, Gaussian, 6000 × 10", *predicted("SVR", lambda: smooth(6000, 10))),
    ("SVR, Gaussian, C = 10, 4000 × 20", *predicted("SVR", lambda: smooth(4000, 20), C=10.0)),
    ("one-class SVM, Gaussian, 10,000 × 20", *predicted("OneClassSVM", lambda: smooth(10000, 20), method="decision_function", nu=0.1)),
    ("one-class SVM, Gaussian, nu = 0.5, 6000 × 10", *predicted("OneClassSVM", lambda: smooth(6000, 10), method="decision_function")),
    ("Gaussian process, search of one length, 800 × 4", *predicted(GP, lambda: smooth(800, 4), kernel=ConstantKernel(1.0) * RBF(1.0) + WhiteKernel(0.1))),
    ("Gaussian process, search of eight lengths, 500 × 8", *predicted(GP, lambda: smooth(500, 8), kernel=ConstantKernel(1.0) * RBF(np.ones(8)) + WhiteKernel(0.1))),
    ("Gaussian process, Matérn 5/2, search, 800 × 4", *predicted(GP, lambda: smooth(800, 4), kernel=ConstantKernel(1.0) * Matern(1.0, nu=2.5) + WhiteKernel(0.1))),
    ("Nyström features, Gaussian, 300 of 20,000 × 20", *predicted("Nystroem", lambda: smooth(20000, 20), method="transform", gamma=0.05, n_components=300, random_state=1)),
    ("Nyström features, polynomial, 200 of 20,000 × 20", *predicted("Nystroem", lambda: smooth(20000, 20), method="transform", kernel="poly", gamma=0.05, coef0=1, degree=3, n_components=200, random_state=1)),
    ("Nyström features, Laplacian, 200 of 20,000 × 20", *predicted("Nystroem", lambda: smooth(20000, 20), method="transform", kernel="laplacian", gamma=0.05, n_components=200, random_state=1)),
    ("kernel PCA, Gaussian, five components, 4000 × 10", *predicted("KernelPCA", lambda: smooth(4000, 10), method="transform", kernel="rbf", n_components=5, random_state=1)),
    ("kernel PCA, polynomial, five components, 4000 × 10", *predicted("KernelPCA", lambda: smooth(4000, 10), method="transform", kernel="poly", n_components=5, random_state=1)),
]


def difference(a, b):
    """The largest difference of two results relative to the largest value; for classes, the share
    of rows that differ. The sign of a component is free."""
    if a.dtype.kind in "iu":
        return float(np.mean(a != b))
    if a.ndim == 2:
        b = b * np.where(np.sum(a * b, axis=0) < 0, -1, 1)
    return float(np.abs(a - b).max() / np.abs(a).max())


def measure(case):
    name, estimator, data, run = case
    X, y = data()
    times, results = {"own": [], "patched": []}, {}
    for turn in range(ROUNDS + 1):
        for which in times:
            cls = OWN[estimator] if which == "own" else getattr(MODULES.get(estimator, svm), estimator)
            start = time.perf_counter()
            results[which] = run(cls, X, y)
            if turn:
                times[which].append(time.perf_counter() - start)
    own, patched = (statistics.median(t) for t in times.values())
    return {"case": name, "own_s": own, "patched_s": patched, "ratio": own / patched, "difference": difference(results["own"], results["patched"])}


def page(found):
    ratios = [r["ratio"] for r in found]
    rows = "\n".join(f"| {r['case']} | {1000 * r['own_s']:.0f} | {1000 * r['patched_s']:.0f} | {r['ratio']:.1f} | {r['difference']:.0e} |" for r in found)
    return f"""# scikit-learn with mercer.accel

`make accel-bench` writes this page by [bench/accel_sklearn.py](../accel_sklearn.py): the wall times
of programs for scikit-learn {sklearn.__version__} without and with `mercer.accel.patch()`, on a
machine with {os.cpu_count()} processors ({platform.machine()}), in one process and in turns. A case is a
fit and the prediction or transform of as many rows; each time is the median of {ROUNDS} runs after
one that is not counted. The difference is the largest one between the results, relative to the
largest value, or, for classes, the share of the rows with different classes. Support vector machines are
solved to a tolerance of 1e-3 by both programs.

The median ratio is {statistics.median(ratios):.1f}, the smallest {min(ratios):.1f}, the largest {max(ratios):.0f}.

| case | scikit-learn, ms | with mercer.accel, ms | ratio | difference |
|---|---|---|---|---|
{rows}
"""


def main():
    warnings.simplefilter("ignore")  # of searches that end at a bound
    accel.patch()
    path = os.path.join(ROOT, "bench", "accel_sklearn.json")
    kept = {}
    if os.path.exists(path):
        with open(path, encoding="utf-8") as f:
            kept = {r["case"]: r for r in json.load(f)}
    wanted = [int(a) for a in sys.argv[1:]] or range(1, len(CASES) + 1)
    for number in wanted:
        result = measure(CASES[number - 1])
        kept[result["case"]] = result
        print(f"{number:2} {result['case']}: {result['own_s']:.3f} s, {result['patched_s']:.3f} s, ratio {result['ratio']:.2f}, difference {result['difference']:.1e}", flush=True)
    found = [kept[case[0]] for case in CASES if case[0] in kept]
    with open(path, "w", encoding="utf-8") as f:
        json.dump(found, f, indent=1)
        f.write("\n")
    if len(found) == len(CASES):
        with open(os.path.join(ROOT, "bench", "results", "accel.md"), "w", encoding="utf-8") as f:
            f.write(page(found))


if __name__ == "__main__":
    main()
