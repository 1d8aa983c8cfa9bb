"""Times searches for the likelihood of a Gaussian process by Mercer's command and by scikit-learn.

    python3 bench/gp_sklearn.py MERCER FOLDER [DEVICE [NAME]]

MERCER is the command, FOLDER has airfoil.csv and kin40k.csv.gz with the target
in the last column, DEVICE is a device such as cpu/avx2, and NAME is one of the searches:

isotropic  3,000 samples of 10 standard normal features, y = sin(xw) + noise,
           one length scale
ard        the 1,503 rows of airfoil.csv, standardized, a length scale for each
           of the 5 features
ard8       the first 1,030 rows of kin40k, standardized, a length scale for each
           of the 8 features

Both programs maximize log p(y) over the length scales, the scale of the kernel
and the variance of the noise, from one start, for centered y. Mercer's time is
that of its fit without reading the file, as the command reports it. Skips when
scikit-learn is absent.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
import warnings

try:
    import numpy as np
    from sklearn.gaussian_process import GaussianProcessRegressor
    from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel
except ImportError as e:
    sys.exit(print(f"skipped: {e}"))

mercer, folder = sys.argv[1:3]
device = ["--device", sys.argv[3]] if sys.argv[3:] else []
warnings.simplefilter("ignore")  # bounds of the length scales


def isotropic():
    rng = np.random.default_rng(7)
    x = rng.standard_normal((3000, 10))
    return x, np.sin(x @ rng.standard_normal(10) / np.sqrt(10)) + 0.1 * rng.standard_normal(3000), []


def ard(name="airfoil.csv", limit=None):
    rows = np.loadtxt(os.path.join(folder, name), delimiter=",", skiprows=1, max_rows=limit)
    rows = (rows - rows.mean(0)) / rows.std(0)
    return rows[:, :-1], rows[:, -1], ["--ard"]


def ard8():
    return ard("kin40k.csv.gz", 1030)


for search in (isotropic, ard, ard8):
    if sys.argv[4:] and search.__name__ != sys.argv[4]:
        continue
    x, y, flags = search()
    y = y - y.mean()
    with tempfile.TemporaryDirectory() as scratch:
        table, model = os.path.join(scratch, "table.npz"), os.path.join(scratch, "model.safetensors")
        np.savez(table, x=x, y=y)
        command = [mercer, "fit", "--learner", "gaussian-process", "--target", "y", "--no-standardize", "--restarts", "0", "--quiet", "--json", "--model", model, *flags, *device, table]
        report = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
    seconds = report["seconds"]["total"] - report["seconds"]["read"]
    kernel = ConstantKernel() * RBF(np.ones(x.shape[1] if flags else 1) * np.sqrt(x.shape[1])) + WhiteKernel(0.1)
    start = time.perf_counter()
    gp = GaussianProcessRegressor(kernel).fit(x, y)
    peer = time.perf_counter() - start
    print(f"{search.__name__}, {x.shape[0]} x {x.shape[1]}: Mercer {seconds:.3g} s, log p(y) {report['facts']['log_likelihood']:.3f} after {report['facts']['evaluations']} evaluations; "
          f"scikit-learn {peer:.3g} s, {gp.log_marginal_likelihood_value_:.3f}; {peer / seconds:.2f} times", flush=True)
