#!/usr/bin/python3
"""Kernel ridge against scikit-learn's KernelRidge, on California housing.

    make agree            (or: bench/agree_sklearn.py [--data FILE] [--device NAME])

Both sides learn the first 10,000 rows and predict the rest, with features
standardized by each side from the raw rows, a Gaussian kernel of sigma = 2
(gamma = 1/2sigma^2 = 1/8) and lambda = 0.1 (alpha), in float64. The largest
relative difference of two predictions is printed; above 1e-8 is a failure.

The bound: scikit-learn solves (K + 0.1 I) a = y by Cholesky, Mercer by what is
fastest, to a relative residual of 1e-12. The condition number is at most
(n + 0.1) / 0.1 = 1e5, so that a backward stable solution is off by about
1e5 * 2^-53 = 1e-11 times a modest growth with n. K times the error of a is at
most the residual, and a prediction is like a row of K: 1e-12 of the targets.
1e-8 leaves room for the growth and for predictions near 0, and for nothing else.

Where scikit-learn or the data are not there it says so and ends with 0, unless
MERCER_REQUIRE contains sklearn.
"""

import argparse
import csv
import os
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
TRAIN = 10_000
SIGMA, LAMBDA = 2.0, 0.1
BOUND = 1e-8


def leave_out(reason):
    """End without a comparison."""
    if "sklearn" in os.environ.get("MERCER_REQUIRE", "").split(","):
        sys.exit(f"agree_sklearn: FAIL: {reason}, and MERCER_REQUIRE asks for it")
    print(f"agree_sklearn: skipped: {reason}")
    sys.exit(0)


try:
    import numpy
    import sklearn
    from sklearn.kernel_ridge import KernelRidge
    from sklearn.preprocessing import StandardScaler
except ImportError as e:
    leave_out(f"scikit-learn is not there ({e}); Debian's package is python3-sklearn")


def mercer(args, *command):
    """Run bin/mercer and return its standard output."""
    line = [os.path.join(ROOT, "bin", "mercer"), *command, "--quiet"]
    if args.device:
        line += ["--device", args.device]
    return subprocess.run(line, check=True, stdout=subprocess.PIPE, text=True).stdout


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", default=os.path.join(ROOT, "..", "shared", "data", "california_housing.csv"))
    parser.add_argument("--device", default="", help="device of bin/mercer; the best by default")
    args = parser.parse_args()
    if not os.path.exists(args.data):
        leave_out(f"{os.path.basename(args.data)} is not there; --data names it")

    with open(args.data, encoding="utf-8", newline="") as f:
        header, *rows = list(csv.reader(f))
    target = header.index("target")
    table = numpy.array(rows, dtype=float)
    y = table[:, target]
    x = numpy.delete(table, target, axis=1)

    with tempfile.TemporaryDirectory() as folder:
        train, test, model = (os.path.join(folder, n) for n in ("train.csv", "test.csv", "model.safetensors"))
        for name, part in ((train, rows[:TRAIN]), (test, rows[TRAIN:])):
            with open(name, "w", encoding="utf-8", newline="") as f:
                csv.writer(f).writerows([header, *part])
        start = time.monotonic()
        print(mercer(args, "fit", "--learner", "kernel-ridge", "--kernel", f"gaussian(sigma={SIGMA})", "--no-intercept", "--tol", "1e-12",
                     "--lambda", str(LAMBDA), "--target", "target", "--model", model, train), end="")
        lines = mercer(args, "predict", "--model", model, test).split()
        ours = time.monotonic() - start
    if lines[0] != "prediction":
        sys.exit(f"agree_sklearn: FAIL: the header is {lines[0]!r}")
    got = numpy.array(lines[1:], dtype=float)

    start = time.monotonic()
    scale = StandardScaler().fit(x[:TRAIN])
    reference = KernelRidge(kernel="rbf", gamma=1 / (2 * SIGMA**2), alpha=LAMBDA)
    reference.fit(scale.transform(x[:TRAIN]), y[:TRAIN])
    want = reference.predict(scale.transform(x[TRAIN:]))
    theirs = time.monotonic() - start

    if got.shape != want.shape:
        sys.exit(f"agree_sklearn: FAIL: {got.shape[0]} predictions for {want.shape[0]} rows")
    difference = numpy.abs(got - want)
    overall = difference.max() / numpy.abs(want).max()
    each = (difference / numpy.abs(want)).max()
    print(f"agree_sklearn: {TRAIN} rows learned, {len(want)} predicted, scikit-learn {sklearn.__version__}")
    print(f"  largest difference / largest prediction  {overall:.2e}")
    print(f"  largest difference / its own prediction  {each:.2e}")
    print(f"  bound                                    {BOUND:.0e}")
    print(f"  seconds, fit and predict                 mercer {ours:.1f}, scikit-learn {theirs:.1f}")
    if not (overall <= BOUND and each <= BOUND):
        sys.exit("agree_sklearn: FAIL: the predictions differ by more than the bound")


if __name__ == "__main__":
    main()
