"""Times classifiers of many classes by Mercer's command and by scikit-learn.

    python3 bench/classes_sklearn.py MERCER FOLDER [DEVICE]

MERCER is the command, FOLDER has MNIST's training images and labels, gzipped
under their original names, and letter.csv with the class in its last column,
and DEVICE is a device such as cpu/avx2.

logistic   20,000 images of 784 pixels between 0 and 1, ten classes, an L2
           penalty with C = 1. scikit-learn makes 200 iterations of lbfgs;
           Mercer's tolerance is the largest of 1e-2, 3e-3, ... with which
           its objective is not above that of scikit-learn.
svc        the first 16,000 rows of letter.csv, 26 classes, standardized,
           gamma = 1/16, and C = 1, 10 and 100, to the same tolerance, 1e-3.

Mercer's time is that of its fit without reading the file, as the command
reports it. Skips when scikit-learn is absent.
"""

import gzip
import json
import os
import subprocess
import sys
import tempfile
import time
import warnings

try:
    import numpy as np
    from sklearn.linear_model import LogisticRegression
    from sklearn.svm import SVC
except ImportError as e:
    sys.exit(print(f"skipped: {e}"))

mercer, folder = sys.argv[1:3]
device = sys.argv[3:4]
warnings.simplefilter("ignore")  # lbfgs does not converge in 200 iterations
scratch = tempfile.TemporaryDirectory()


def own(learner, table, *flags):
    """Fit a table, and return the report and the seconds without those of reading."""
    model = os.path.join(scratch.name, "model.safetensors")
    command = [mercer, "fit", "--learner", learner, "--target", "y", "--task", "classification", "--no-standardize", "--quiet", "--json", "--model", model, *flags, table]
    for name in device:
        command += ["--device", name]
    report = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
    return report, report["seconds"]["total"] - report["seconds"]["read"]


def saved(x, y):
    """Write the samples to a file for the command."""
    table = os.path.join(scratch.name, "table.npz")
    np.savez(table, x=x, y=y)
    return table


def timed(model, x, y):
    start = time.perf_counter()
    return model.fit(x, y), time.perf_counter() - start


def row(what, seconds, peer):
    print(f"{what}: Mercer {seconds:.3g} s, scikit-learn {peer:.3g} s, {peer / seconds:.2f} times", flush=True)


def array(name, offset):
    with gzip.open(os.path.join(folder, name)) as f:
        return np.frombuffer(f.read(), np.uint8, offset=offset)


x = array("mnist-train-images-idx3-ubyte.gz", 16).reshape(-1, 784)[:20000] / 255
y = array("mnist-train-labels-idx1-ubyte.gz", 8)[:20000].astype(float)
table = saved(x, y)
m, peer = timed(LogisticRegression(C=1, max_iter=200), x, y)
loss = -m.predict_log_proba(x)[np.arange(len(y)), y.astype(int)].sum() + (m.coef_**2).sum() / 2
for tol in (1e-2, 3e-3, 1e-3, 3e-4, 1e-4, 1e-5):
    report, seconds = own("logistic", table, "--lambda", "1", "--tol", str(tol))
    if report["facts"]["loss"] <= loss:
        break
row(f"logistic, objective {report['facts']['loss']:.1f} at tol {tol:g}, and {loss:.1f} after {m.n_iter_[0]} iterations", seconds, peer)

rows = np.loadtxt(os.path.join(folder, "letter.csv"), delimiter=",", skiprows=1, dtype=str)[:16000]
x = rows[:, :-1].astype(float)
x = (x - x.mean(0)) / x.std(0)
y = np.unique(rows[:, -1], return_inverse=True)[1].astype(float)
table = saved(x, y)
for c in (1, 10, 100):
    m, peer = timed(SVC(C=c, gamma=1 / 16, cache_size=512), x, y)
    _, seconds = own("svc", table, "--C", str(c), "--kernel", "gaussian(sigma=2.8284271247461903)")
    row(f"svc, C = {c}, {m.n_support_.sum()} support vectors", seconds, peer)
