"""Measures Gaussian processes for many rows: negative log predictive density, coverage and time.

    python3 bench/large_gp_sklearn.py MERCER FOLDER [kin40k|protein [ROWS [SECONDS]]]

MERCER is the command, and FOLDER has kin40k.csv.gz and protein.csv.gz, whose target is the last column.
The first 90 % of the rows in a random order (seed 1), standardized, are fitted, and the others are
predicted. The page of Markdown that it prints has, for each table,

- mercer fit --learner nystrom-ridge --std --optimize --ard with all rows,
- mercer fit --learner gaussian-process with the parameters that the first fit has found, on 10,000 rows,
- scikit-learn's GaussianProcessRegressor with the same parameters on 10,000 rows, and
- the same with its own search for the parameters on ROWS rows, 2,000 by default, which is stopped after
  SECONDS by the clock if they are given. The search takes about 250 ROWS² bytes for kin40k.

The density and the coverage are those of the targets in the units of the table, with the noise. The processor
time of all threads and the time by the clock are those of the fit and of all predictions; Mercer's include
reading the tables, and those of a stopped search, a lower bound, the start of Python.
"""

import json
import os
import re
import resource
import subprocess
import sys
import tempfile
import time
import warnings

import numpy as np
from scipy.stats import norm
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel

warnings.simplefilter("ignore")  # bounds of the length scales

if sys.argv[1] == "scikit-learn":  # the measurement itself, in a process of its own
    train, test, out, rows, parameters = sys.argv[2:]
    x, y = np.load(train)["x"][:int(rows)], np.load(train)["y"][:int(rows)]
    z, given = np.load(test)["x"], json.loads(parameters)
    if given:
        kernel = RBF(given["scales"]) + WhiteKernel(given["noise"])
    else:
        kernel = ConstantKernel() * RBF(np.ones(x.shape[1])) + WhiteKernel(0.1)
    began = time.process_time(), time.perf_counter()
    process = GaussianProcessRegressor(kernel, alpha=0, optimizer=None if given else "fmin_l_bfgs_b").fit(x, y)
    mean, std = process.predict(z, return_std=True)
    seconds = time.process_time() - began[0], time.perf_counter() - began[1]
    if given:  # the scale s² that maximizes the likelihood, as in Mercer's fits
        std *= np.sqrt(y @ process.alpha_ / len(y))
    np.savez(out, prediction=mean, std=std, seconds=seconds)
    sys.exit()

mercer, folder = sys.argv[1:3]
tables = sys.argv[3:4] or ["kin40k", "protein"]
searched = int(sys.argv[4]) if sys.argv[4:] else 2000
limit = float(sys.argv[5]) if sys.argv[5:] else None
CENTERS = {"kin40k": 6500, "protein": 4000}


def row(name, rows, seconds, mean, std, y, unit):
    """A row of the table of results; mean, std and y are standardized."""
    density = norm.logpdf(y, mean, std) - np.log(unit)
    print(f"| {name} | {rows:,} | {-density.mean():.3f} | {100 * np.mean(abs(y - mean) <= norm.ppf(0.975) * std):.1f} % | {seconds[0]:.1f} s | {seconds[1]:.1f} s |", flush=True)


def run(scratch, rows, *flags):
    """Fits and predicts with the command, and returns the report of the fit, the times and the predictions."""
    began = time.perf_counter()
    model = os.path.join(scratch, "model.safetensors")
    table = ["--arrays", "x,y", "--quiet", "--json", "--model", model]
    fit = [mercer, "fit", *table, "--target", "y", "--no-standardize", *flags, os.path.join(scratch, f"train{rows}.npz")]
    report = json.loads(subprocess.run(fit, check=True, stdout=subprocess.PIPE).stdout)
    found = json.loads(subprocess.run([mercer, "predict", *table, "--std", os.path.join(scratch, "test.npz")], check=True, stdout=subprocess.PIPE).stdout)
    seconds = report["processor_seconds"] + found["processor_seconds"], time.perf_counter() - began
    return report, seconds, np.array(found["predictions"])[:, 0], np.array(found["std"])[:, 0]


for table in tables:
    data = np.loadtxt(os.path.join(folder, table + ".csv.gz"), delimiter=",", skiprows=1)
    data = data[np.random.default_rng(1).permutation(len(data))]
    n = len(data) * 9 // 10
    unit = data[:n].std(0)[-1]
    data = (data - data[:n].mean(0)) / data[:n].std(0)
    x, y = data[n:, :-1], data[n:, -1]
    print(f"\n{table}: {n:,} rows fitted, {len(x):,} predicted, {x.shape[1]} features\n\n| process | rows | NLPD | in the 95 % interval | processor time | time |\n|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as scratch:
        for name, part in (("test", data[n:]), (f"train{n}", data[:n]), ("train10000", data[:10000])):
            np.savez(os.path.join(scratch, name + ".npz"), x=part[:, :-1], y=part[:, -1])
        report, seconds, mean, std = run(scratch, n, "--learner", "nystrom-ridge", "--std", "--optimize", "--ard", "--centers", str(CENTERS[table]))
        row(f"`nystrom-ridge`, {CENTERS[table]:,} centers, with search", n, seconds, mean, std, y, unit)
        kernel, noise = report["kernel"], report["facts"]["lambda_found"]
        report, seconds, mean, std = run(scratch, 10000, "--learner", "gaussian-process", "--no-optimize", "--kernel", kernel, "--lambda", repr(noise))
        row("`gaussian-process`, the same parameters", 10000, seconds, mean, std, y, unit)
        scales = [float(v) for v in re.findall(r"[\d.e+-]+", kernel.split("=", 1)[1])]
        for name, rows, given in (("scikit-learn, the same parameters", 10000, {"scales": scales, "noise": noise}), ("scikit-learn, with search", searched, {})):
            files = [os.path.join(scratch, f) for f in ("train10000.npz", "test.npz", "out.npz")]
            used = resource.getrusage(resource.RUSAGE_CHILDREN)
            try:
                subprocess.run([sys.executable, __file__, "scikit-learn", *files, str(rows), json.dumps(given)], check=True, timeout=None if given else limit)
            except subprocess.TimeoutExpired:
                now = resource.getrusage(resource.RUSAGE_CHILDREN)
                print(f"| {name}, stopped | {rows:,} | – | – | > {now.ru_utime + now.ru_stime - used.ru_utime - used.ru_stime:.1f} s | > {limit:.1f} s |", flush=True)
                continue
            found = np.load(files[2])
            row(name, rows, found["seconds"], found["prediction"], found["std"], y, unit)
