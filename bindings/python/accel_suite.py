"""Runs scikit-learn's own tests without and with mercer.accel, and writes a table.

    python3 bindings/python/accel_suite.py bench/results/accel-tests.md

With MERCER_ACCEL_MIN=0 every input is large enough for Mercer, so that the small data of the tests
run in Mercer. The program fails if a test has another outcome with mercer.accel than without it.
"""

import collections
import os
import re
import subprocess
import sys
import tempfile
import xml.etree.ElementTree

import sklearn

FILES = (
    "tests/test_kernel_ridge.py",
    "svm/tests/test_svm.py",
    "svm/tests/test_sparse.py",
    "gaussian_process/tests/test_gpr.py",
    "tests/test_kernel_approximation.py",
    "decomposition/tests/test_kernel_pca.py",
    "linear_model/tests/test_ridge.py",
    "linear_model/tests/test_coordinate_descent.py",
    "linear_model/tests/test_logistic.py",
    "neighbors/tests/test_neighbors.py",
)
SOURCE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "src")


def run(name, patched):
    """The outcomes of the tests of a file by their names, and the lines of the log by their texts."""
    with tempfile.TemporaryDirectory() as folder:
        xml_file, log = os.path.join(folder, "outcomes.xml"), os.path.join(folder, "log")
        environment = {**os.environ, "MERCER_ACCEL_MIN": "0", "MERCER_ACCEL_LOG": log, "PYTHONPATH": os.pathsep.join([SOURCE, os.environ.get("PYTHONPATH", "")])}
        command = [sys.executable, *(["-m", "mercer.accel"] if patched else []), "-m", "pytest", "-q", "-p", "no:cacheprovider", "--junitxml", xml_file, os.path.join(os.path.dirname(sklearn.__file__), name)]
        done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
        if not os.path.exists(xml_file):
            raise SystemExit(f"{name}: pytest wrote no outcomes:\n{done.stdout}{done.stderr}")
        outcomes = {}
        for case in xml.etree.ElementTree.parse(xml_file).iter("testcase"):
            outcome = next((child.tag for child in case if child.tag in ("failure", "error", "skipped")), "passed")
            outcomes[f"{case.get('classname')}.{case.get('name')}"] = outcome
        lines = collections.Counter()
        if os.path.exists(log):
            with open(log, encoding="utf-8") as f:
                lines.update(re.sub(r" \(.*", "", line.strip().removeprefix("mercer.accel: ")) for line in f)
        return outcomes, lines


def compare(name):
    """The numbers of a file for the table, and the tests whose outcomes differ."""
    without, _ = run(name, False)
    outcomes, lines = run(name, True)
    differ = sorted(test for test in {*without, *outcomes} if without.get(test) != outcomes.get(test))
    return without, outcomes, lines, differ


def main():
    to = sys.argv[1]
    rows, reasons, differ = [], [], []
    for name in FILES:
        without, outcomes, lines, different = compare(name)
        differ += different
        passed = [sum(outcome == "passed" for outcome in o.values()) for o in (without, outcomes)]
        fits = collections.Counter()
        for line, count in lines.items():
            method, place = re.match(r"\w+\.(\w+): (Mercer|scikit-learn)", line).groups()
            fits["fits" if method == "fit" else "other", place] += count
        rows.append(f"| {name} | {passed[0]} | {passed[1]} | {fits['fits', 'Mercer']} | {fits['fits', 'scikit-learn']} | {fits['other', 'Mercer']} | {fits['other', 'scikit-learn']} |")
        for line, count in sorted(lines.items()):
            if ": scikit-learn: " in line:
                method, _, reason = line.partition(": scikit-learn: ")
                reasons.append(f"| {name} | {method} | {count} | {reason} |")
        print(rows[-1], *different, sep="\n", flush=True)
    text = f"""# scikit-learn's tests with mercer.accel

`make accel-tests` writes this page: scikit-learn {sklearn.__version__}'s own tests, run by pytest with
and without `python -m mercer.accel`, with `MERCER_ACCEL_MIN=0`, so that Mercer also computes small
inputs. Every test has the same outcome in both runs. The last four columns count calls with
mercer.accel.

| file | passed without | passed with | fits in Mercer | fits in scikit-learn | other calls in Mercer | other calls in scikit-learn |
|---|---|---|---|---|---|---|
{chr(10).join(rows)}

The calls that ran in scikit-learn, with the reasons. "An error in the arguments" are calls for
which the test expects an error.

| file | method | calls | reason |
|---|---|---|---|
{chr(10).join(reasons)}
"""
    if differ:
        raise SystemExit(f"tests have different outcomes with mercer.accel: {', '.join(differ)}")
    with open(to, "w", encoding="utf-8") as f:
        f.write(text)


if __name__ == "__main__":
    main()
