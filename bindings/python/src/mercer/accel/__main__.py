"""python -m mercer.accel program.py [arguments]"""

import os
import runpy
import sys

from . import patch


def main():
    if len(sys.argv) < 2 or sys.argv[1] in ("-h", "--help"):
        sys.exit("usage: python -m mercer.accel program.py [arguments]\n       python -m mercer.accel -m module [arguments]")
    patch()
    del sys.argv[0]
    if sys.argv[0] == "-m":
        del sys.argv[0]
        if not sys.argv:
            sys.exit("mercer.accel: -m needs the name of a module")
        runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
        return
    sys.path[0] = os.path.dirname(os.path.abspath(sys.argv[0]))
    if not os.path.isfile(sys.argv[0]):
        sys.exit(f"mercer.accel: there is no program {sys.argv[0]}")
    runpy.run_path(sys.argv[0], run_name="__main__")


if __name__ == "__main__":
    main()
