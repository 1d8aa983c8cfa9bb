"""Times scikit-learn with and without mercer.accel on 24 fixed cases.

    make accel-bench

A case is a fit and its predictions or transforms, as a program calls them. There are two cases for
each of the thirteen classes, but one for RBFSampler and for each of the two classes of neighbors, and
three for SVC, which has the most users. The first case of a class has the parameters and a size that
are usual; the others have another kernel or another kind of data. The cases of a class were not chosen
by their times, and none is left out.

Each case runs once without being counted and then in turns without and with mercer.accel, after a pause
of 0.1 s in which the threads of the other program fall asleep: five turns, or 25 if a run takes less than
0.05 s. The time is the median, and the middle half of the turns' ratios is the spread. With numbers as
arguments only these cases run, and the others keep their results in bench/accel_sklearn.json, from which
bench/results/accel.md is written.
"""

import datetime
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
import threadpoolctl  # noqa: E402
from sklearn import decomposition, gaussian_process, kernel_approximation, kernel_ridge, linear_model, neighbors, svm  # noqa: E402
from sklearn.datasets import load_digits, make_classification  # noqa: E402
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Matern, WhiteKernel  # noqa: E402

from mercer import accel  # noqa: E402

MODULES = {
    "KernelRidge": kernel_ridge, "SVC": svm, "SVR": svm, "OneClassSVM": svm, "GaussianProcessRegressor": gaussian_process, "Nystroem": kernel_approximation,
    "RBFSampler": kernel_approximation, "KernelPCA": decomposition, "Ridge": linear_model, "Lasso": linear_model, "LogisticRegression": linear_model,
    "KNeighborsClassifier": neighbors, "KNeighborsRegressor": neighbors}
OWN = {name: getattr(module, name) for name, module in MODULES.items()}
ROUNDS, SHORT, SHORT_ROUNDS = 5, 0.05, 25


def smooth(n, d, targets=1):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(n, d))
    Y = np.sin(X @ rng.normal(size=(d, targets))) + 0.1 * rng.normal(size=(n, targets))
    return X, Y[:, 0] if targets == 1 else Y


def linear(n, d):
    """Targets that depend on ten of d features."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(n, d))
    return X, X[:, :10] @ rng.normal(size=10) + rng.normal(size=n)


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


GP = "GaussianProcessRegressor"
CASES = [
    ("kernel ridge, Gaussian, 6000 × 10", *predicted("KernelRidge", lambda: smooth(6000, 10), kernel="rbf", gamma=0.05, alpha=0.1)),
    ("kernel ridge, polynomial, 4000 × 20", *predicted("KernelRidge", lambda: smooth(4000, 20), kernel="poly", alpha=1.0)),
    ("SVC, Gaussian, two classes, 10,000 × 20", *predicted("SVC", lambda: classes(10000, 20, 2))),
    ("SVC, Gaussian, digits, 1797 × 64", *predicted("SVC", lambda: load_digits(return_X_y=True))),
    ("SVC, linear, sparse words, 3000 × 5000", *predicted("SVC", lambda: text(3000, 5000), kernel="linear")),
    ("SVR, Gaussian, 6000 × 10", *predicted("SVR", lambda: smooth(6000, 10))),
    ("SVR, Gaussian, C = 10, 4000 × 20", *predicted("SVR", lambda: smooth(4000, 20), C=10.0)),
    ("one-class SVM, Gaussian, 10,000 × 20", *predicted("OneClassSVM", lambda: smooth(10000, 20), method="decision_function", nu=0.1)),
    ("one-class SVM, Gaussian, nu = 0.5, 6000 × 10", *predicted("OneClassSVM", lambda: smooth(6000, 10), method="decision_function")),
    ("Gaussian process, search of one length, 800 × 4", *predicted(GP, lambda: smooth(800, 4), kernel=ConstantKernel(1.0) * RBF(1.0) + WhiteKernel(0.1))),
    ("Gaussian process, Matérn 5/2, search, 800 × 4", *predicted(GP, lambda: smooth(800, 4), kernel=ConstantKernel(1.0) * Matern(1.0, nu=2.5) + WhiteKernel(0.1))),
    ("Nyström features, Gaussian, 300 of 20,000 × 20", *predicted("Nystroem", lambda: smooth(20000, 20), method="transform", gamma=0.05, n_components=300, random_state=1)),
    ("Nyström features, polynomial, 200 of 20,000 × 20", *predicted("Nystroem", lambda: smooth(20000, 20), method="transform", kernel="poly", gamma=0.05, coef0=1, degree=3, n_components=200, random_state=1)),
    ("random Fourier features, 500 of 20,000 × 20", *predicted("RBFSampler", lambda: smooth(20000, 20), method="transform", gamma=0.05, n_components=500, random_state=1)),
    ("kernel PCA, Gaussian, five components, 4000 × 10", *predicted("KernelPCA", lambda: smooth(4000, 10), method="transform", kernel="rbf", n_components=5, random_state=1)),
    ("kernel PCA, polynomial, five components, 4000 × 10", *predicted("KernelPCA", lambda: smooth(4000, 10), method="transform", kernel="poly", n_components=5, random_state=1)),
    ("ridge, 50,000 × 50", *predicted("Ridge", lambda: smooth(50000, 50))),
    ("ridge, ten targets, 5000 × 500", *predicted("Ridge", lambda: smooth(5000, 500, 10), alpha=10.0)),
    ("lasso, 10,000 × 200", *predicted("Lasso", lambda: linear(10000, 200), alpha=0.1)),
    ("lasso, more features than samples, 500 × 5000", *predicted("Lasso", lambda: linear(500, 5000), alpha=0.1)),
    ("logistic regression, two classes, 20,000 × 50", *predicted("LogisticRegression", lambda: classes(20000, 50, 2))),
    ("logistic regression, six classes, 8000 × 16", *predicted("LogisticRegression", lambda: classes(8000, 16, 6))),
    ("classes of five neighbors, 10,000 × 20", *predicted("KNeighborsClassifier", lambda: classes(10000, 20, 6))),
    ("means of ten neighbors, 10,000 × 10", *predicted("KNeighborsRegressor", lambda: smooth(10000, 10), n_neighbors=10)),
]


def difference(a, b):
    """The largest difference of two results relative to the largest value; for classes, the share
    of rows that differ. The sign of a component is free."""
    if a.dtype.kind in "iu":
        return float(np.mean(a != b))
    if a.ndim == 2:
        b = b * np.where(np.sum(a * b, axis=0) < 0, -1, 1)
    return float(np.abs(a - b).max() / np.abs(a).max())


def in_mercer():
    """The number of calls that ran in Mercer."""
    return sum(calls.count for calls in accel.report() if calls.ran_in == "Mercer")


def measure(case):
    name, estimator, data, run = case
    X, y = data()
    before, times, results = in_mercer(), {"own": [], "patched": []}, {}
    turn, rounds = 0, ROUNDS
    while turn <= rounds:
        for which in times:
            cls = OWN[estimator] if which == "own" else getattr(MODULES[estimator], estimator)
            time.sleep(0.1)  # the threads of the other program stop waiting for work
            start = time.perf_counter()
            results[which] = run(cls, X, y)
            if turn:
                times[which].append(time.perf_counter() - start)
        if turn == 1 and min(min(t) for t in times.values()) < SHORT:
            rounds = SHORT_ROUNDS
        turn += 1
    own, patched = (statistics.median(t) for t in times.values())
    low, _, high = statistics.quantiles((a / b for a, b in zip(*times.values())), n=4, method="inclusive")
    return {
        "case": name, "date": str(datetime.date.today()), "rounds": rounds, "own_s": own, "patched_s": patched, "ratio": own / patched, "low": low, "high": high,
        "in_mercer": in_mercer() > before, "difference": difference(results["own"], results["patched"])}


def processor():
    """The name of the processor, and its number of logical ones."""
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as f:
            name = next(line.partition(":")[2].strip() for line in f if line.startswith("model name"))
    except (OSError, StopIteration):
        name = platform.machine()
    return f"{name}, {os.cpu_count()} processors"


def blas():
    """The version of OpenBLAS and the processor that it chose its kernels for."""
    found = [info for info in threadpoolctl.threadpool_info() if info["user_api"] == "blas"]
    return "; ".join(f"{info['internal_api']} {info['version']} for {info.get('architecture', 'an unknown processor')}, {info['num_threads']} threads" for info in found)


def shown(ratio):
    """A ratio with two decimals below 1.1, where they matter."""
    return f"{ratio:.2f}" if ratio < 1.1 else f"{ratio:.1f}"


def page(found):
    ratios = [r["ratio"] for r in found]
    rows = "\n".join(
        f"| {r['case']} | {1000 * r['own_s']:.{1 if r['own_s'] < SHORT else 0}f} | {1000 * r['patched_s']:.{1 if r['patched_s'] < SHORT else 0}f} | {shown(r['ratio'])} | {r['low']:.2f} to {r['high']:.2f} | "
        f"{r['rounds']} | {'Mercer' if r['in_mercer'] else 'scikit-learn'} | {r['difference']:.0e} |" for r in found)
    dates = sorted({r["date"] for r in found})
    own = [r for r in found if not r["in_mercer"]]
    equal = sum(r["low"] <= 1 <= r["high"] for r in own)
    return f"""# scikit-learn with mercer.accel

`make accel-bench` writes this page by [bench/accel_sklearn.py](../accel_sklearn.py): the wall times
of programs for scikit-learn without and with `mercer.accel.patch()`, in one process and in turns.

- date: {" to ".join([dates[0], *dates[1:][-1:]])}
- processor: {processor()}
- scikit-learn {sklearn.__version__}, numpy {np.__version__}, scipy {scipy.__version__}
- BLAS of numpy and scipy: {blas()}{"".join(f"; {name}={os.environ[name]}" for name in ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE") if name in os.environ)}

A case is a fit and the prediction or transform of as many rows, and each class has about two cases. Each
time is the median of the turns after one that is not counted. The ratio is that of the two medians, and
the spread is the middle half of the ratios of single turns. The difference is the largest one between the
results, relative to the largest value, or, for classes, the share of the rows with different classes.
Support vector machines are solved to a tolerance of 1e-3 by both programs.

A case runs in Mercer if at least one of its calls does. {len(own)} of the cases run in scikit-learn with mercer.accel too, because Mercer is
not faster there or does not compute the same. Both runs then execute the same code after Mercer's checks. The spread contains 1 for
{equal} of these {len(own)} cases.

The median ratio is {statistics.median(ratios):.1f}, the smallest {min(ratios):.2f}, the largest {max(ratios):.0f}.
{sum(r < 1 for r in ratios)} ratios are below 1.

| case | scikit-learn, ms | with mercer.accel, ms | ratio | spread | turns | runs in | difference |
|---|---|---|---|---|---|---|---|
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
        print(f"{number:2} {result['case']}: {result['own_s']:.3f} s, {result['patched_s']:.3f} s, ratio {result['ratio']:.2f} ({result['low']:.2f} to {result['high']:.2f}), in Mercer: {result['in_mercer']}, difference {result['difference']:.1e}", flush=True)
    found = [kept[case[0]] for case in CASES if case[0] in kept]
    with open(path, "w", encoding="utf-8") as f:
        json.dump(found, f, indent=1)
        f.write("\n")
    if len(found) == len(CASES):
        with open(os.path.join(ROOT, "bench", "results", "accel.md"), "w", encoding="utf-8") as f:
            f.write(page(found))


if __name__ == "__main__":
    main()
