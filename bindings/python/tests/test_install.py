"""`pip install ./python` into a virtual environment of its own."""

import os
import subprocess
import sys
import tempfile
import unittest

from . import support


class TestInstall(unittest.TestCase):
    def test_pip(self):
        library = os.path.join(support.ROOT, "bin", "libmercer.so")
        if not os.path.exists(library):
            support.absent("library", "bin/libmercer.so is not built: make libmercer")
        for module in ("venv", "ensurepip", "hatchling"):
            if subprocess.run([sys.executable, "-c", f"import {module}"], capture_output=True).returncode:
                support.absent("pip", f"{sys.executable} has no {module}")
        with tempfile.TemporaryDirectory() as folder:
            subprocess.run([sys.executable, "-m", "venv", "--system-site-packages", folder], check=True)
            python = os.path.join(folder, "bin", "python")
            # Without an index: what the build needs is installed already.
            environment = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "MERCER_LIBRARY")}
            done = subprocess.run([python, "-m", "pip", "install", "--quiet", "--no-index", "--no-build-isolation", os.path.join(support.ROOT, "bindings", "python")],
                                  env=environment, capture_output=True, text=True)
            self.assertEqual(done.returncode, 0, done.stderr)
            program = "import mercer, mercer._library as l; print(l._path()); print(mercer.MercerRidge(alpha=0).fit([[0.0], [1], [2]], [1, 2, 3]).predict([[3.0]])[0])"
            done = subprocess.run([python, "-c", program], env=environment, cwd=folder, capture_output=True, text=True)
            self.assertEqual(done.returncode, 0, done.stderr)
            path, value = done.stdout.split()
            self.assertTrue(path.startswith(os.path.realpath(folder)) or path.startswith(folder), path)
            # A line through three points: a few roundings of numbers up to 4.
            self.assertLessEqual(abs(float(value) - 4), 64 * support.U)
