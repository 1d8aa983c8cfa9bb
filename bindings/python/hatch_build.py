"""The build hook of hatchling, which puts the shared library into the wheel."""

import ctypes
import os
import re
import shutil
import subprocess
import sysconfig

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class LibraryHook(BuildHookInterface):
    """Adds the library that MERCER_LIBRARY names to the wheel. If the variable is not set, the
    hook adds bin/libmercer.so of the checkout, and builds this file by `make libmercer` if it is
    missing. If there is no library, or if it has another version of the interface, the build
    fails with a message of one line."""

    def initialize(self, version, build_data):
        library = os.environ.get("MERCER_LIBRARY") or self._of_the_checkout()
        self._check(library)
        if version == "editable":
            return  # the package finds ../../bin/libmercer.so by itself
        build_data["force_include"][os.path.abspath(library)] = "mercer/libmercer.so"
        licenses = os.path.join(os.path.dirname(os.path.abspath(library)), "LICENSES.txt")
        if not os.path.isfile(licenses):
            self._fail(f"there is no {licenses}, the licenses of what the library links: `make libmercer` writes it beside the library")
        build_data["force_include"][licenses] = "mercer/LICENSES.txt"
        license = os.path.join(self.root, "..", "..", "LICENSE")
        if os.path.isfile(license):
            build_data["force_include"][os.path.abspath(license)] = "mercer/LICENSE"
        build_data["pure_python"] = False
        build_data["tag"] = f"py3-none-{platform(library)}"  # for any version of Python, because the library does not link to Python

    def _fail(self, text):
        self.app.abort(f"mercer: {text}")

    def _of_the_checkout(self):
        root = os.path.normpath(os.path.join(self.root, "..", ".."))
        library = os.path.join(root, "bin", "libmercer.so")
        if os.path.isfile(library):
            return library
        advice = "build libmercer.so by `make libmercer` in a checkout of Mercer, and name the file in the environment variable MERCER_LIBRARY"
        if not os.path.isfile(os.path.join(root, "bindings", "c", "mercer.h")):
            self._fail(f"there is no shared library beside {self.root}, which is not in a checkout: {advice}")
        lacking = [program for program in ("make", "go", os.environ.get("CC", "gcc").split()[0]) if shutil.which(program) is None]
        if lacking:
            self._fail(f"there is no {library}, and it cannot be built here without {', '.join(lacking)}: install what is missing, or {advice}")
        done = subprocess.run(["make", "libmercer"], cwd=root, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        if done.returncode or not os.path.isfile(library):
            lines = [line for line in done.stdout.splitlines() if line.strip() and not line.startswith("make")] or ["it says nothing"]
            self._fail(f"`make libmercer` in {root} failed: {lines[-1]}")
        return library

    def _check(self, library):
        with open(os.path.join(self.root, "src", "mercer", "_library.py"), encoding="utf-8") as f:
            wanted = int(re.search(r"^ABI = (\d+)$", f.read(), re.MULTILINE)[1])
        if not os.path.isfile(library):
            self._fail(f"MERCER_LIBRARY names {library}, and there is no such file")
        try:
            interface = ctypes.CDLL(os.path.abspath(library)).mercer_abi()
        except (OSError, AttributeError) as err:
            self._fail(f"{library} cannot be loaded: {err}")
        if interface != wanted:
            self._fail(f"{library} has the interface {interface}, this package needs {wanted}: build it again by `make libmercer`")


def platform(library):
    """The platform tag of the library: manylinux with the newest version of glibc among
    its symbols (PEP 600), whose names end with a zero byte in its string table."""
    here = sysconfig.get_platform().replace("-", "_").replace(".", "_")
    with open(library, "rb") as f:
        versions = [int(v) for v in re.findall(rb"\0GLIBC_2\.(\d+)(?:\.\d+)?(?=\0)", f.read())]
    return here.replace("linux", f"manylinux_2_{max(versions)}", 1) if versions else here
