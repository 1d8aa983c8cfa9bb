"""Fits MNIST by Mercer's command and by scikit-learn: times and errors on one page.

    python3 bench/mnist_sklearn.py MERCER FOLDER [--rows N] [--device NAME] [--fits LIST]

MERCER is the command, FOLDER has MNIST's four files, gzipped under their
original names, N is the number of training images (default all 60,000), and
LIST has some of the fits, with commas:

ridge    exact kernel ridge regression of the ten classes, Gaussian kernel of
         sigma 5, lambda 0.1; scikit-learn's KernelRidge needs 8 n^2 bytes and
         is left out above 12,000 images
svc      C = 10, gamma = 0.02, one against one, with the default cache, beside
         SVC (LIBSVM) with a cache of 2,000 MB
nystrom  ridge regression on M = 3,000 Nystrom features of the same Gaussian
         kernel, lambda 0.1, beside RidgeClassifier on Nystroem's features

Pixels are between 0 and 1, and the errors are those of the 10,000 test images.
Mercer's time is that of its fit without reading the file, as the command
reports it. Skips when scikit-learn is absent.
"""

import argparse
import gzip
import json
import os
import subprocess
import sys
import tempfile
import time

try:
    import numpy as np
    from sklearn.kernel_approximation import Nystroem
    from sklearn.kernel_ridge import KernelRidge
    from sklearn.linear_model import RidgeClassifier
    from sklearn.pipeline import make_pipeline
    from sklearn.svm import SVC
except ImportError as e:
    sys.exit(print(f"skipped: {e}"))

parser = argparse.ArgumentParser()
parser.add_argument("mercer")
parser.add_argument("folder")
parser.add_argument("--rows", type=int, default=60000)
parser.add_argument("--device")
parser.add_argument("--fits", default="ridge,svc,nystrom")
parser.add_argument("--peer", choices=("yes", "no"), default="yes")
option = parser.parse_args()
scratch = tempfile.TemporaryDirectory()


def array(name, offset):
    with gzip.open(os.path.join(option.folder, name)) as f:
        return np.frombuffer(f.read(), np.uint8, offset=offset)


def images(part, rows):
    x = array(f"mnist-{part}-images-idx3-ubyte.gz", 16).reshape(-1, 784)[:rows] / 255
    y = array(f"mnist-{part}-labels-idx1-ubyte.gz", 8)[:rows].astype(float)
    table = os.path.join(scratch.name, f"{part}.npz")
    np.savez(table, x=x, y=y)
    return x, y, table


x, y, table = images("train", option.rows)
x_test, y_test, test = images("t10k", 10000)


def run(*command):
    return json.loads(subprocess.run([option.mercer, *command, "--quiet", "--json"], check=True, capture_output=True).stdout)


def own(learner, *flags):
    """Return the seconds of a fit without reading, and the error on the test images."""
    model = os.path.join(scratch.name, "model.safetensors")
    device = ["--device", option.device] if option.device else []
    report = run("fit", "--learner", learner, "--target", "y", "--task", "classification", "--no-standardize", "--model", model, *flags, *device, table)
    score = run("evaluate", "--model", model, *device, test)
    return report["seconds"]["total"] - report["seconds"]["read"], 1 - score["accuracy"], report["peak_bytes"]


def show(name, seconds, error, note=""):
    print(f"| {name} | {seconds:.3g} s | {100 * error:.2f} % | {note} |", flush=True)
    return seconds


class Classes:
    """The class with the largest output of a regression of the indicators."""

    def __init__(self, regression):
        self.regression = regression

    def fit(self, x, y):
        self.regression.fit(x, np.eye(10)[y.astype(int)])
        return self

    def predict(self, x):
        return self.regression.predict(x).argmax(1)


gamma = 1 / (2 * 5**2)
fits = {
    "ridge": ("kernel-ridge", ("--kernel", "gaussian(sigma=5)", "--lambda", "0.1"), Classes(KernelRidge(alpha=0.1, kernel="rbf", gamma=gamma)) if option.rows <= 12000 else None),
    "svc": ("svc", ("--kernel", "gaussian(sigma=5)", "--C", "10"), SVC(C=10, gamma=gamma, cache_size=2000)),
    "nystrom": ("nystrom-ridge", ("--kernel", "gaussian(sigma=5)", "--lambda", "0.1", "--centers", "3000"), make_pipeline(Nystroem(gamma=gamma, n_components=3000, random_state=1), RidgeClassifier(alpha=0.1))),
}
print(f"{option.rows} images\n\n| fit | time | error | |\n|---|---:|---:|---|")
for name in option.fits.split(","):
    learner, flags, peer = fits[name]
    seconds, error, peak = own(learner, *flags)
    show(f"Mercer {learner}", seconds, error, f"{peak / 1e9:.2g} GB")
    if peer is None or option.peer == "no":
        continue
    start = time.perf_counter()
    peer.fit(x, y)
    took = time.perf_counter() - start
    show(f"scikit-learn {type(getattr(peer, 'regression', peer)).__name__}" if name != "nystrom" else "scikit-learn RidgeClassifier on Nystroem", took, np.mean(peer.predict(x_test) != y_test), f"{took / seconds:.2f} times")
