"""Compares the times of fits from Python and by the command, on the same arrays.

    make python-bench

Measures three times of a fit of kernel ridge, each as the minimum over several alternating runs:
the wall time of estimator.fit; the time that the library spent in Go during this call; and the
time of the stages gram, factor and solve in a fit by the command, a Go program. The ratio of the
first time to the second shows the overhead of Python.

With --json it prints each time as an object that `mercer bench import` reads. The entrants of the
three times are "mercer-python", "mercer-library" and "mercer-command".
"""

import json
import os
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "src"))

import numpy as np  # noqa: E402

import mercer  # noqa: E402

COMMAND = os.path.join(HERE, "..", "..", "bin", "mercer")
ROUNDS = 5


def main(objects):
    if not objects:
        print(f"{'rows':>6} {'features':>8} {'type':>8} {'Python':>10} {'in Go':>10} {'Python costs':>13} {'command':>10} {'Python/command':>15}")
    rng = np.random.default_rng(1)
    with tempfile.TemporaryDirectory() as folder:
        for n, d, kind in [(500, 10, np.float64), (2000, 20, np.float64), (4000, 20, np.float64), (4000, 20, np.float32)]:
            X = rng.normal(size=(n, d)).astype(kind)
            y = np.sin(X[:, 0]).astype(np.float64) + X[:, 1]
            table = os.path.join(folder, "t.npz")
            np.savez(table, X=X.astype(np.float64), y=y)
            sigma = float(np.sqrt(d))
            python, inside, command = [], [], []
            estimator = mercer.MercerKernelRidge(kernel=f"gaussian(sigma={sigma!r})", alpha=1.0, solver="dual")
            for _ in range(ROUNDS):
                start = time.perf_counter()
                estimator.fit(X, y)
                python.append(time.perf_counter() - start)
                inside.append(estimator.model_.info["seconds"])
                done = subprocess.run(
                    [COMMAND, "fit", "--json", "--quiet", "--no-standardize", "--learner", "kernel-ridge", "--no-intercept", "--kernel", f"gaussian(sigma={sigma!r})",
                     "--lambda", "1", "--solver", "dual", "--target", "y", "--model", os.path.join(folder, "m.safetensors"), table],
                    capture_output=True, text=True, check=True)
                seconds = json.loads(done.stdout)["seconds"]
                command.append(seconds["gram"] + seconds["factor"] + seconds["solve"])
            if objects:
                for entrant, timings in ("mercer-python", python), ("mercer-library", inside), ("mercer-command", command):
                    for seconds in timings:
                        print(json.dumps({"program": "python-fit", "entrant": entrant, "learner": "kernel-ridge", "solver": "dual",
                                          "precision": np.dtype(kind).name, "n": n, "d": d, "seconds": seconds}))
                continue
            p, g, c = min(python), min(inside), min(command)
            print(f"{n:>6} {d:>8} {np.dtype(kind).name:>8} {1e3 * p:>8.1f} ms {1e3 * g:>7.1f} ms {100 * (p / g - 1):>+11.1f} % {1e3 * c:>7.1f} ms {p / c:>15.2f}")


if __name__ == "__main__":
    main("--json" in sys.argv[1:])
