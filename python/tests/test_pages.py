"""The programs in the pages."""

import os
import re
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
