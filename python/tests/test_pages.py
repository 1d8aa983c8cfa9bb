"""The programs in the pages."""

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
        for page in ("README.md", os.path.join("python", "README.md")):
            with open(os.path.join(support.ROOT, page), encoding="utf-8") as f:
                programs = re.findall(r"```python\n(.*?)```", f.read(), re.DOTALL)
            self.assertTrue(programs, page)
            for program in programs:
                if "mercer" not in program:
                    continue
                names = {}
                exec(compile(program, page, "exec"), names)
                # Not tuned, but no better than the mean would be 0.
                self.assertGreater(names["model"].score(names["X"], names["y"]), 0.3)

    def test_c(self):
        """Compiles the C program of the README as the body of a function."""
        compiler = shutil.which("cc")
        if compiler is None:
            support.absent("cc", "there is no C compiler")
        with open(os.path.join(support.ROOT, "README.md"), encoding="utf-8") as f:
            program = re.search(r"```c\n(.*?)```", f.read(), re.DOTALL).group(1)
        include, body = program.split("\n", 1)
        text = f"{include}\nvoid f(const double *samples, const double *targets, double *predictions, int n, int d);\n"
        text += f"void f(const double *samples, const double *targets, double *predictions, int n, int d)\n{{\n{body}}}\n"
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "page.c")
            with open(path, "w", encoding="utf-8") as f:
                f.write(text)
            done = subprocess.run([compiler, "-std=c11", "-Wall", "-Wextra", "-Werror", "-fsyntax-only", "-I", os.path.join(support.ROOT, "libmercer"), path],
                                  capture_output=True, text=True)
            self.assertEqual(done.returncode, 0, done.stderr)
