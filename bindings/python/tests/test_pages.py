"""Runs the programs that the documentation pages show."""

import contextlib
import os
import re
import shutil
import subprocess
import tempfile
import unittest

from . import support


class TestPages(unittest.TestCase):
    def test_python(self):
        """Runs the Python programs of the pages as they stand."""
        for page in (os.path.join("docs", "c-and-python.md"), os.path.join("docs", "guide", "exchange.md"), os.path.join("docs", "guide", "scikit-learn.md"), os.path.join("bindings", "python", "README.md")):
            with open(os.path.join(support.ROOT, page), encoding="utf-8") as f:
                programs = re.findall(r"```python\n(.*?)```", f.read(), re.DOTALL)
            self.assertTrue(programs, page)
            for program in programs:
                if "mercer" not in program:
                    continue
                names = {}
                with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
                    exec(compile(program, page, "exec"), names)
                # The model is not tuned; predicting the mean would give 0.
                self.assertGreater(names["model"].score(names["X"], names["y"]), 0.3)

    def test_c(self):
        """Builds the C program of docs/c-and-python.md by the commands there, and runs it."""
        if shutil.which("cc") is None:
            support.absent("cc", "there is no C compiler")
        library = os.path.join(support.ROOT, "bin", "libmercer.so")
        if not os.path.exists(library):
            support.absent("library", "bin/libmercer.so is not built: make libmercer")
        with open(os.path.join(support.ROOT, "docs", "c-and-python.md"), encoding="utf-8") as f:
            page = f.read()
        program, commands = re.search(r"```c\n(.*?)```\n\n((?:    [^\n]*\n)+)", page, re.DOTALL).groups()
        self.assertIn("make libmercer\n", commands)
        with tempfile.TemporaryDirectory() as folder:
            os.symlink(os.path.join(support.ROOT, "bin"), os.path.join(folder, "bin"))
            with open(os.path.join(folder, "example.c"), "w", encoding="utf-8") as f:
                f.write(program)
            # The library is built already, so building the program must print nothing.
            script = "set -e\nmake() { :; }\ncc() { command cc -Wall -Wextra -Werror \"$@\"; }\n" + commands
            done = subprocess.run(["bash", "-c", script], cwd=folder, capture_output=True, text=True)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual(done.stdout, "f(1.05) = 0.87, sin(1.05) = 0.87\n")
