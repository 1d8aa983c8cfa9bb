"""The tests of the Python package: `make python-test`."""
