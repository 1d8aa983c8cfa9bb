"""Times kernel ridge regression with a small λ by Mercer's command and by scikit-learn.

    python3 bench/lambda_sklearn.py MERCER

MERCER is the command. The 8,000 samples are standard normal, and y is
sin(2xw/√d) + 0.1 noise. Both programs compute the exact fit. Mercer chooses its
method, to a residual of 1e-8, and its time is that of its fit without reading
the file, as the command reports it; KernelRidge factors K + λI. Each figure is
the median of five fits, in turns, on every SIMD tier of the processor. Skips
when scikit-learn is absent.
"""

import json
import math
import os
import statistics
import subprocess
import sys
import tempfile
import time

try:
    import numpy as np
    from sklearn.kernel_ridge import KernelRidge
except ImportError as e:
    sys.exit(print(f"skipped: {e}"))

mercer = sys.argv[1]
devices = subprocess.run([mercer, "devices", "--json"], check=True, capture_output=True, text=True).stdout
tiers = [name for name in ("cpu/avx512", "cpu/avx2") if f'"{name}"' in devices]
n, repeats = 8000, 5

for kernel, d, lam in (("laplacian", 3, 1e-3), ("gaussian", 8, 1e-3), ("gaussian", 20, 1e-3), ("gaussian", 50, 1e-3), ("gaussian", 8, 1e-6)):
    rng = np.random.default_rng(1)
    x = rng.normal(size=(n, d))
    y = np.sin(2 * x @ rng.normal(size=d) / math.sqrt(d)) + 0.1 * rng.normal(size=n)
    sigma = float(d) if kernel == "laplacian" else math.sqrt(d)
    peer = KernelRidge(alpha=lam, kernel="laplacian", gamma=1 / sigma) if kernel == "laplacian" else KernelRidge(alpha=lam, kernel="rbf", gamma=1 / (2 * sigma**2))
    times = {name: [] for name in [*tiers, "scikit-learn"]}
    methods = {}
    with tempfile.TemporaryDirectory() as folder:
        table, model = os.path.join(folder, "table.npz"), os.path.join(folder, "model.safetensors")
        np.savez(table, X=x, y=y)
        for _ in range(repeats):
            for name in tiers:
                command = [mercer, "fit", "--json", "--quiet", "--no-standardize", "--kernel", f"{kernel}(sigma={sigma!r})", "--lambda", str(lam)]
                command += ["--device", name, "--target", "y", "--model", model, table]
                report = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
                times[name].append(report["seconds"]["total"] - report["seconds"]["read"])
                methods[name] = report["solver"]
            start = time.perf_counter()
            peer.fit(x, y)
            times["scikit-learn"].append(time.perf_counter() - start)
    median = {name: statistics.median(t) for name, t in times.items()}
    own = ", ".join(f"{name} {median[name]:.3g} s by {methods[name]}, {median['scikit-learn'] / median[name]:.2f} times" for name in tiers)
    print(f"{kernel}, d = {d}, lambda = {lam:g}: scikit-learn {median['scikit-learn']:.3g} s; {own}", flush=True)
