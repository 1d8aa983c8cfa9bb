"""Times scikit-learn with and without mercer.accel on 24 fixed cases of two sizes.

    make accel-bench

A case is a fit and its predictions or transforms, as a program calls them. There are two cases for
each of the thirteen classes, but one for RBFSampler and for each of the two classes of neighbors, and
three for SVC, which has the most users. The first case of a class has usual parameters; the others have
another kernel or another kind of data. The cases of a class were not chosen by their times, and none is
left out.

Each case has a usual size and a large one. The large size is such that scikit-learn takes about ten
seconds on two processors, or the samples or the results take one or two gigabytes.

The programs without and with mercer.accel run in turns, after a pause of 0.1 s in which the threads of
the other program fall asleep, and each program is the first one in every second turn. There are four
turns, or twelve if both programs take less than three seconds, or 26 if they take less than 0.05 s. Below
three seconds an additional first turn is not counted. The time is the median, and the
middle half of the turns' ratios is the spread. With numbers as arguments only these cases run: 1 to 24
with usual sizes, 25 to 48 with large ones. The others keep their results in bench/accel_sklearn.json,
from which bench/results/accel.md is written.
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
TURNS = {0.05: 26, 3.0: 12, float("inf"): 4}  # the number of turns for runs that take less than the key in seconds


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


def predicted(name, make, usual, large, method="predict", **parameters):
    """A case that fits an estimator and predicts for the same number of rows. usual and large are the
    arguments of make, which returns X and y."""

    def run(cls, X, y):
        estimator = cls(**parameters).fit(X, y)
        return getattr(estimator, method)(X)

    return name, make, (usual, large), run


def digits(n, d, k):
    """The digits of scikit-learn, or for other sizes generated classes."""
    X, y = load_digits(return_X_y=True)
    return (X, y) if X.shape == (n, d) else classes(n, d, k)


GP = "GaussianProcessRegressor"
CASES = [
    ("kernel ridge, Gaussian", *predicted("KernelRidge", smooth, (6000, 10), (12500, 10), kernel="rbf", gamma=0.05, alpha=0.1)),
    ("kernel ridge, polynomial", *predicted("KernelRidge", smooth, (4000, 20), (13500, 20), kernel="poly", alpha=1.0)),
    ("SVC, Gaussian, two classes", *predicted("SVC", classes, (10000, 20, 2), (30000, 20, 2))),
    ("SVC, Gaussian, ten classes", *predicted("SVC", digits, (1797, 64, 10), (12500, 64, 10))),
    ("SVC, linear, sparse words", *predicted("SVC", text, (3000, 5000), (5000, 5000), kernel="linear")),
    ("SVR, Gaussian", *predicted("SVR", smooth, (6000, 10), (16000, 10))),
    ("SVR, Gaussian, C = 10", *predicted("SVR", smooth, (4000, 20), (8000, 20), C=10.0)),
    ("one-class SVM, Gaussian", *predicted("OneClassSVM", smooth, (10000, 20), (36000, 20), method="decision_function", nu=0.1)),
    ("one-class SVM, Gaussian, nu = 0.5", *predicted("OneClassSVM", smooth, (6000, 10), (20000, 10), method="decision_function")),
    ("Gaussian process, search of one length", *predicted(GP, smooth, (800, 4), (2500, 4), kernel=ConstantKernel(1.0) * RBF(1.0) + WhiteKernel(0.1))),
    ("Gaussian process, Matérn 5/2, search", *predicted(GP, smooth, (800, 4), (2200, 4), kernel=ConstantKernel(1.0) * Matern(1.0, nu=2.5) + WhiteKernel(0.1))),
    ("Nyström features, Gaussian", *predicted("Nystroem", smooth, (20000, 20), (200000, 20), method="transform", gamma=0.05, n_components=300, random_state=1)),
    ("Nyström features, polynomial", *predicted("Nystroem", smooth, (20000, 20), (200000, 20), method="transform", kernel="poly", gamma=0.05, coef0=1, degree=3, n_components=200, random_state=1)),
    ("random Fourier features", *predicted("RBFSampler", smooth, (20000, 20), (200000, 20), method="transform", gamma=0.05, n_components=500, random_state=1)),
    ("kernel PCA, Gaussian, five components", *predicted("KernelPCA", smooth, (4000, 10), (16000, 10), method="transform", kernel="rbf", n_components=5, random_state=1)),
    ("kernel PCA, polynomial, five components", *predicted("KernelPCA", smooth, (4000, 10), (16000, 10), method="transform", kernel="poly", n_components=5, random_state=1)),
    ("ridge", *predicted("Ridge", smooth, (50000, 50), (2500000, 50))),
    ("ridge, ten targets", *predicted("Ridge", smooth, (5000, 500, 10), (250000, 500, 10), alpha=10.0)),
    ("lasso", *predicted("Lasso", linear, (10000, 200), (600000, 200), alpha=0.1)),
    ("lasso, more features than samples", *predicted("Lasso", linear, (500, 5000), (2500, 50000), alpha=0.1)),
    ("logistic regression, two classes", *predicted("LogisticRegression", classes, (20000, 50, 2), (2500000, 50, 2))),
    ("logistic regression, six classes", *predicted("LogisticRegression", classes, (8000, 16, 6), (2500000, 16, 6))),
    ("classes of five neighbors", *predicted("KNeighborsClassifier", classes, (10000, 20, 6), (90000, 20, 6))),
    ("means of ten neighbors", *predicted("KNeighborsRegressor", smooth, (10000, 10), (50000, 10), n_neighbors=10)),
]
SIZES = ("usual", "large")


def samples(size):
    """The text of the numbers of rows and columns."""
    return " × ".join(f"{v:,}" if v >= 10_000 else str(v) for v in size[:2])


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


def measure(case, which):
    name, estimator, make, sizes, run = case
    X, y = make(*sizes[SIZES.index(which)])
    before, results = in_mercer(), {}

    def turn(number):
        """The times without and with mercer.accel."""
        times = {}
        for program in sorted(("own", "patched"), reverse=number % 2 == 1):
            (accel.unpatch if program == "own" else accel.patch)()
            cls = getattr(MODULES[estimator], estimator)
            results.pop(program, None)
            time.sleep(0.1)  # the threads of the other program stop waiting for work
            start = time.perf_counter()
            results[program] = run(cls, X, y)
            times[program] = time.perf_counter() - start
        return times["own"], times["patched"]

    first = turn(0)
    rounds = next(count for limit, count in TURNS.items() if max(first) < limit)
    turns = [turn(0) if max(first) < 3 else first, *(turn(number) for number in range(1, rounds))]
    own, patched = (statistics.median(t) for t in zip(*turns))
    low, _, high = statistics.quantiles((a / b for a, b in turns), n=4, method="inclusive")
    return {
        "case": name, "size": which, "samples": samples(X.shape), "date": str(datetime.date.today()), "rounds": rounds, "own_s": own, "patched_s": patched, "ratio": own / patched,
        "low": low, "high": high, "in_mercer": in_mercer() > before, "difference": difference(results["own"], results["patched"])}


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


def milliseconds(seconds):
    return f"{1000 * seconds:.{1 if seconds < 0.05 else 0}f}"


def table(found):
    """A sentence on the ratios, and the rows of one size."""
    ratios = [r["ratio"] for r in found]
    rows = "\n".join(
        f"| {r['case']} | {r['samples']} | {milliseconds(r['own_s'])} | {milliseconds(r['patched_s'])} | {shown(r['ratio'])} | {r['low']:.2f} to {r['high']:.2f} | "
        f"{r['rounds']} | {'Mercer' if r['in_mercer'] else 'scikit-learn'} | {r['difference']:.0e} |" for r in found)
    return f"""The median ratio is {statistics.median(ratios):.1f}, the smallest {min(ratios):.2f}, the largest {max(ratios):.0f}; {sum(r >= 5.8 for r in ratios)} of the {len(ratios)} ratios are
at least 5.8, and {sum(r < 1 for r in ratios)} are below 1.

| case | samples | scikit-learn, ms | with mercer.accel, ms | ratio | spread | turns | runs in | difference |
|---|---|---|---|---|---|---|---|---|
{rows}
"""


def page(found):
    dates = sorted({r["date"] for r in found})
    own = [r for r in found if not r["in_mercer"]]
    equal = sum(r["low"] <= 1 <= r["high"] for r in own)
    usual, large = ([r for r in found if r["size"] == size] for size in SIZES)
    return f"""# scikit-learn with mercer.accel

`make accel-bench` writes this page by [bench/accel_sklearn.py](../accel_sklearn.py): the wall times
of programs for scikit-learn without and with `mercer.accel.patch()`, in one process and in turns.

- date: {" to ".join([dates[0], *dates[1:][-1:]])}
- processor: {processor()}
- scikit-learn {sklearn.__version__}, numpy {np.__version__}, scipy {scipy.__version__}
- BLAS of numpy and scipy: {blas()}{"".join(f"; {name}={os.environ[name]}" for name in ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE") if name in os.environ)}

A case is a fit and the prediction or transform of as many rows, and each class has about two cases. Each
case has a usual and a large size. Each time is the median of the turns, and each program is the first one in
every second turn. The ratio is that of the two medians, and the spread is the middle half of the ratios of
single turns. The difference is the largest one between the results, relative to the largest value, or, for classes,
the share of the rows with different classes. Support vector machines are solved to a tolerance of 1e-3 by
both programs.

A case runs in Mercer if at least one of its calls does. {len(own)} of the runs stay in scikit-learn with mercer.accel
too, because Mercer is not faster there or does not compute the same. Both programs then execute the same code
after Mercer's checks. The spread contains 1 for {equal} of these {len(own)} runs.

## Large samples

scikit-learn takes about ten seconds, or the samples or the results take one or two gigabytes.

{table(large)}
## Usual samples

{table(usual)}"""


def main():
    warnings.simplefilter("ignore")  # of searches that end at a bound
    accel.patch()
    path = os.path.join(ROOT, "bench", "accel_sklearn.json")
    kept = {}
    if os.path.exists(path):
        with open(path, encoding="utf-8") as f:
            kept = {(r["case"], r["size"]): r for r in json.load(f)}
    runs = [(case, which) for which in SIZES for case in CASES]
    for number in [int(a) for a in sys.argv[1:]] or range(1, len(runs) + 1):
        case, which = runs[number - 1]
        result = measure(case, which)
        kept[case[0], which] = result
        print(f"{number:2} {result['case']}, {result['samples']}: {result['own_s']:.3f} s, {result['patched_s']:.3f} s, ratio {result['ratio']:.2f} ({result['low']:.2f} to {result['high']:.2f}), in Mercer: {result['in_mercer']}, difference {result['difference']:.1e}", flush=True)
        found = [kept[case[0], which] for case, which in runs if (case[0], which) in kept]
        with open(path, "w", encoding="utf-8") as f:
            json.dump(found, f, indent=1)
            f.write("\n")
        if len(found) == len(runs):
            with open(os.path.join(ROOT, "bench", "results", "accel.md"), "w", encoding="utf-8") as f:
                f.write(page(found))


if __name__ == "__main__":
    main()
