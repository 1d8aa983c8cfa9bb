"""Times a Gaussian Gram matrix by Mercer and by scikit-learn's rbf_kernel.

    python3 bench/gram_sklearn.py [n [d [precision]]]

n = 10,000 points of d = 50 features unless others are given, float64 on all
processors, the two in turns. Mercer evaluates the lower triangle, which is what
its solvers use; scikit-learn has no such choice. Skips when scikit-learn or Go
is absent.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
import time

try:
    import numpy as np
    import sklearn
    from sklearn.metrics.pairwise import rbf_kernel
except ImportError as e:
    sys.exit(print(f"skipped: {e}"))
if not shutil.which("go"):
    sys.exit(print("skipped: there is no go"))

n = int(sys.argv[1]) if len(sys.argv) > 1 else 10000
d = int(sys.argv[2]) if len(sys.argv) > 2 else 50
precision = sys.argv[3] if len(sys.argv) > 3 else "float64"
root = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))

with tempfile.TemporaryDirectory() as folder:
    binary = os.path.join(folder, "gram.test")
    subprocess.run(["go", "test", "-c", "-o", binary, "./cpu"], cwd=root, check=True)
    pattern = f"BenchmarkGram/n={n}/d={d}/precision={precision}/kernel=(none|gaussian.*[)])$"
    x = np.random.default_rng(1).standard_normal((n, d)).astype(precision)
    rbf_kernel(x[:100], gamma=0.5 / d)
    times = {"scikit-learn": []}
    for _ in range(5):
        start = time.perf_counter()
        rbf_kernel(x, gamma=0.5 / d)
        times["scikit-learn"].append(time.perf_counter() - start)
        out = subprocess.run([binary, "-test.run=^$", f"-test.bench={pattern}", "-test.benchtime=3x"],
                             cwd=os.path.join(root, "cpu"), check=True, capture_output=True, text=True).stdout
        for name, ns in re.findall(r"kernel=([^/\s]+?)(?:-\d+)?\s+\d+\s+([\d.]+) ns/op", out):
            times.setdefault("Mercer, XXᵀ alone" if name == "none" else "Mercer", []).append(float(ns) / 1e9)

if "Mercer" not in times:
    sys.exit(f"no benchmark has n={n}, d={d}, {precision}:\n{out}")
print(f"Gaussian Gram matrix, n = {n}, d = {d}, {precision}; scikit-learn {sklearn.__version__}")
median = {k: sorted(v)[len(v) // 2] for k, v in times.items()}
for name, seconds in median.items():
    print(f"  {name:20} {1e3 * seconds:8.1f} ms  ({1e3 * min(times[name]):.1f}–{1e3 * max(times[name]):.1f})")
print(f"  scikit-learn takes {median['scikit-learn'] / median['Mercer']:.1f} times as long;"
      f" the kernel costs {median['Mercer'] / median['Mercer, XXᵀ alone']:.2f} times the product")
