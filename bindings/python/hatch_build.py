"""The build hook of hatchling: the shared library goes into the wheel."""

import os
import sysconfig

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class LibraryHook(BuildHookInterface):
    """Adds the library that MERCER_LIBRARY names, or else the one that
    `make libmercer` built. Without one the wheel has none, and the package looks
    for MERCER_LIBRARY when it is used."""

    def initialize(self, version, build_data):
        if version == "editable":
            return  # the package finds ../../bin/libmercer.so by itself
        library = os.environ.get("MERCER_LIBRARY") or os.path.join(self.root, "..", "..", "bin", "libmercer.so")
        if not os.path.isfile(library):
            self.app.display_warning(f"no shared library at {library}: the wheel will need MERCER_LIBRARY; `make libmercer` builds it")
            return
        platform = sysconfig.get_platform().replace("-", "_").replace(".", "_")
        build_data["force_include"][os.path.abspath(library)] = "mercer/libmercer.so"
        build_data["pure_python"] = False
        build_data["tag"] = f"py3-none-{platform}"  # any Python: the library does not link to it
