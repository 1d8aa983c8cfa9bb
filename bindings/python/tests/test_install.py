"""Runs `pip install` and `make wheel`, each with a new virtual environment."""

import glob
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
import zipfile

from . import support

PACKAGE = os.path.join(support.ROOT, "bindings", "python")
LIBRARY = os.path.join(support.ROOT, "bin", "libmercer.so")

# The libraries that a manylinux wheel may link to (PEP 600, the policies of auditwheel).
ALLOWED = {"libc.so.6", "libm.so.6", "libpthread.so.0", "libdl.so.2", "librt.so.1", "libresolv.so.2", "ld-linux-x86-64.so.2", "ld-linux-aarch64.so.1"}

FIT = "import mercer, mercer._library as l; print(l._path()); print(mercer.MercerRidge(alpha=0).fit([[0.0], [1], [2]], [1, 2, 3]).predict([[3.0]])[0])"


def environment(**changes):
    """The environment without the variables that point to this checkout."""
    return {**{k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "MERCER_LIBRARY")}, **changes}


class TestInstall(unittest.TestCase):
    def setUp(self):
        if not os.path.exists(LIBRARY):
            support.absent("library", "bin/libmercer.so is not built: make libmercer")
        for module in ("venv", "pip", "hatchling"):
            if subprocess.run([sys.executable, "-c", f"import {module}"], capture_output=True).returncode:
                support.absent("pip", f"{sys.executable} has no {module}")
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = os.path.realpath(folder.name)
        self.venv = os.path.join(self.folder, "venv")
        self.python = os.path.join(self.venv, "bin", "python")
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", "--system-site-packages", self.venv], check=True)

    def pip(self, *args, **changes):
        """Runs pip without an index, because the packages that a build needs are installed already."""
        return subprocess.run([sys.executable, "-m", "pip", "--python", self.python, "install", "--quiet", "--no-index", "--no-build-isolation", *args],
                              env=environment(**changes), cwd=self.folder, capture_output=True, text=True)

    def fits(self, **changes):
        """Checks that the installed package fits with the library that it contains."""
        done = subprocess.run([self.python, "-c", FIT], env=environment(**changes), cwd=self.folder, capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        path, value = done.stdout.split()
        self.assertTrue(os.path.realpath(path).startswith(self.venv), path)
        # A line through three points has a few rounding errors of numbers up to 4.
        self.assertLessEqual(abs(float(value) - 4), 64 * support.U)

    def refused(self, done, text):
        """Checks that pip failed with one line from this package, and without a traceback."""
        said = done.stdout + done.stderr
        self.assertNotEqual(done.returncode, 0)
        lines = [line.strip() for line in said.splitlines() if "mercer: " in line]
        self.assertEqual(len(lines), 1, said)
        self.assertRegex(lines[0], text)
        self.assertNotIn("Traceback", said)

    def test_pip(self):
        done = self.pip(PACKAGE)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.fits()

    def test_wheel(self):
        """Checks that the wheel of `make wheel` installs and fits without Go and without the
        checkout, and that its platform tag follows from its symbols."""
        if shutil.which("make") is None:
            support.absent("make", "make is not installed")
        out = os.path.join(self.folder, "out")
        # The library is built already.
        done = subprocess.run(["make", "-C", support.ROOT, "--old-file=libmercer", "wheel", f"PYTHON={sys.executable}", f"WHEELS={out}"],
                              env=environment(), capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertNotIn("go build", done.stdout)
        (wheel,) = glob.glob(os.path.join(out, "*.whl"))
        machine = os.uname().machine
        tag = re.fullmatch(rf"mercer_kernels-[0-9.]+-py3-none-manylinux_2_([0-9]+)_{machine}\.whl", os.path.basename(wheel))
        self.assertIsNotNone(tag, wheel)
        with zipfile.ZipFile(wheel) as z:
            names = z.namelist()
            (about,) = [n for n in names if n.endswith(".dist-info/WHEEL")]
            self.assertIn("Root-Is-Purelib: false", z.read(about).decode())
            self.assertIn(f"Tag: py3-none-manylinux_2_{tag[1]}_{machine}", z.read(about).decode())
            self.assertIn("mercer/LICENSE", names)
            licenses = z.read("mercer/LICENSES.txt").decode()
            linked = subprocess.run(["go", "version", "-m", LIBRARY], capture_output=True, text=True, check=True).stdout
            modules = re.findall(r"^\tdep\t(\S+)\t(\S+)", linked, re.MULTILINE)
            self.assertTrue(modules)
            modules.append(("Go's standard library,", re.match(r".*: (\S+)", linked)[1]))
            self.assertEqual([m for m in modules if "\n{} {}: ".format(*m) not in "\n" + licenses], [])
            self.assertEqual([n for n in names if n.endswith((".so", ".pyc", ".h"))], ["mercer/libmercer.so"])
            library = z.extract("mercer/libmercer.so", self.folder)
        if shutil.which("readelf"):
            dynamic = subprocess.run(["readelf", "-dW", library], capture_output=True, text=True, check=True).stdout
            self.assertLessEqual(set(re.findall(r"\(NEEDED\).*\[(.*)\]", dynamic)), ALLOWED)
            self.assertNotRegex(dynamic, "RPATH|RUNPATH|TEXTREL")
            versions = subprocess.run(["readelf", "-VW", library], capture_output=True, text=True, check=True).stdout
            self.assertEqual(max(int(v) for v in re.findall(r"GLIBC_2\.([0-9]+)", versions)), int(tag[1]))
        with open(library, "rb") as f:
            self.assertNotIn(os.fsencode(os.path.join(support.ROOT, "bindings")), f.read())  # a path of this machine
        done = self.pip(wheel, PATH="/nonexistent")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.fits(PATH="/nonexistent")

    def test_without_the_library(self):
        """Checks that an installation that would not work fails with one line that says what to do."""
        def copied(root):
            """A copy of the package in a separate folder."""
            return shutil.copytree(PACKAGE, os.path.join(root, "bindings", "python"), ignore=shutil.ignore_patterns("__pycache__", "tests"))

        alone = copied(os.path.join(self.folder, "alone"))
        self.refused(self.pip(alone), "there is no shared library beside .*make libmercer.*MERCER_LIBRARY")
        self.refused(self.pip("--editable", alone), "there is no shared library beside")
        self.refused(self.pip(alone, MERCER_LIBRARY="/nonexistent/libmercer.so"), "MERCER_LIBRARY names /nonexistent/libmercer.so, and there is no such file")
        self.refused(self.pip(alone, MERCER_LIBRARY=__file__), f"{re.escape(__file__)} cannot be loaded")
        elsewhere = shutil.copy(LIBRARY, self.folder)
        self.refused(self.pip(alone, MERCER_LIBRARY=elsewhere), "there is no .*LICENSES.txt.*`make libmercer` writes it")
        done = self.pip(alone, MERCER_LIBRARY=LIBRARY)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.fits()

        other = copied(os.path.join(self.folder, "other"))
        interface = os.path.join(other, "src", "mercer", "_library.py")
        with open(interface, encoding="utf-8") as f:
            text = f.read()
        with open(interface, "w", encoding="utf-8") as f:
            f.write(re.sub(r"(?m)^ABI = \d+$", "ABI = 99", text))
        self.refused(self.pip(other, MERCER_LIBRARY=LIBRARY), "has the interface [0-9]+, this package needs 99")

    def test_builds_the_library_where_it_can(self):
        """Checks that an installation from a checkout without the library builds it by `make
        libmercer`. If this fails, or if a required program is missing, pip reports it in one
        line."""
        root = os.path.join(self.folder, "checkout")
        package = shutil.copytree(PACKAGE, os.path.join(root, "bindings", "python"), ignore=shutil.ignore_patterns("__pycache__", "tests"))
        os.makedirs(os.path.join(root, "bindings", "c"))
        shutil.copy(os.path.join(support.ROOT, "bindings", "c", "mercer.h"), os.path.join(root, "bindings", "c"))
        self.refused(self.pip(package, PATH="/nonexistent"), "there is no .*libmercer.so, and it cannot be built here without make, go, gcc: install")

        # These scripts replace programs that this machine may not have.
        programs = os.path.join(self.folder, "programs")
        os.makedirs(programs)
        for name, body in (("go", "exit 9"), ("gcc", "exit 9"), ("make", "echo 'main.go:7: a defect'; exit 2")):
            with open(os.path.join(programs, name), "w", encoding="utf-8") as f:
                f.write(f"#!/bin/sh\n{body}\n")
            os.chmod(os.path.join(programs, name), 0o755)
        self.refused(self.pip(package, PATH=programs), "`make libmercer` in .* failed: main.go:7: a defect")
        with open(os.path.join(programs, "make"), "w", encoding="utf-8") as f:
            f.write(f"#!/bin/sh\ntest \"$1\" = libmercer && /bin/mkdir bin && /bin/cp '{LIBRARY}' '{os.path.dirname(LIBRARY)}/LICENSES.txt' bin/\n")
        done = self.pip(package, PATH=programs)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.fits()
