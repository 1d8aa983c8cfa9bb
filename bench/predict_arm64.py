#!/usr/bin/env python3
"""Predict the throughput of the NEON micro-kernels from their machine code.

    python3 bench/predict_arm64.py > bench/results/arm64-prediction.md

in the repository's root. It builds the tests of cpu/internal/ukr for arm64, takes the
inner loop with the largest number of multiply-adds of each function below, counts its instructions,
and asks llvm-mca for its throughput on processors that LLVM has models of. Nothing is
run, and nothing is measured: caches, the translation of addresses and the clock are not
in the models. It needs Go and LLVM 17 or later, whose version is taken from the
environment variable LLVM (default 19, for llvm-mca-19).
"""

import os
import re
import subprocess
import tempfile

VERSION = os.environ.get("LLVM", "19")

# For each processor: its name for LLVM, the number of pipes for multiply-adds of 128 bits in
# float64 and in float32, and the source of this number.
PROCESSORS = [
    ("apple-m1", {"F64": 2, "F32": 3}, "the model that LLVM uses for it, of Apple's Cyclone (2013)"),
    ("neoverse-n1", {"F64": 2, "F32": 2}, "Arm Neoverse N1 Software Optimization Guide: V0 and V1"),
    ("neoverse-v1", {"F64": 4, "F32": 4}, "Arm Neoverse V1 Software Optimization Guide: V0 to V3"),
]

# For each function: its name, and the operation that uses it.
FUNCTIONS = [
    ("gemm", "packed tile of Gemm, Syrk, Potrf and Gram"),
    ("trsm", "packed tile of Trsm, its product"),
    ("gemmDirect", "small products"),
    ("sqDist", "packed tile of Gram by differences"),
    ("distanceExp", "Gaussian: distance and exponential"),
    ("exp", "exponential"),
    ("gemvPanel", "K·V"),
    ("gemvPanelPair", "K·V for a symmetric K"),
    ("dotAxpy12", "Symv, twelve rows"),
    ("gemv", "Gemv"),
    ("gemvT", "Gemv of the transpose"),
    ("dot", "Dot"),
    ("axpy", "Axpy"),
]

MULTIPLY_ADD = re.compile(r"^fml[as]\b")
BRANCH = re.compile(r"^(b|b\.\w+|tbn?z|cbn?z)\s+.*?0x([0-9a-f]+)")


def disassemble(folder):
    """The instructions of each function, by address, as (address, text)."""
    program = os.path.join(folder, "ukr.test")
    subprocess.run(["go", "test", "-c", "-o", program, "./cpu/internal/ukr"], check=True,
                   env=dict(os.environ, GOOS="linux", GOARCH="arm64", CGO_ENABLED="0"))
    text = subprocess.run([f"llvm-objdump-{VERSION}", "-d", "--no-show-raw-insn", "--print-imm-hex=false", program],
                          check=True, capture_output=True, text=True).stdout
    functions, name = {}, None
    for line in text.splitlines():
        head = re.match(r"^[0-9a-f]+ <.*/ukr\.(\w+NEON)\.abi0>:$", line)
        if head:
            name = head[1]
            functions[name] = []
        elif line.endswith(">:"):
            name = None
        elif name and (instruction := re.match(r"^\s*([0-9a-f]+):\s+(.*)$", line)):
            functions[name].append((int(instruction[1], 16), re.sub(r"\s+", " ", instruction[2])))
    return functions


def inner_loop(instructions):
    """The loop with the largest number of multiply-adds, or the longest: instructions that end with a
    branch to the first of them and have no other branch but those that leave the loop,
    which are taken to be not taken."""
    index = {at: n for n, (at, _) in enumerate(instructions)}
    best = []
    for n, (at, text) in enumerate(instructions):
        branch = BRANCH.match(text)
        if not branch:
            continue
        to = index.get(int(branch[2], 16))
        if to is None or to >= n:
            continue
        body = instructions[to:n + 1]
        targets = [int(b[2], 16) for b in (BRANCH.match(t) for _, t in body[:-1]) if b]
        if any(instructions[to][0] <= target <= at for target in targets):
            continue
        if (weight(body), len(body)) > (weight(best), len(best)):
            best = body
    return [text for _, text in best]


def weight(body):
    return sum(bool(MULTIPLY_ADD.match(text)) for _, text in body)


def longest_chain(loop):
    """How many multiply-adds of one round wait for each other: the maximum into one register
    that nothing else writes."""
    counts, others = {}, set()
    for text in loop:
        name, _, operands = text.partition(" ")
        to = re.match(r"[vqds](\d+)\b", operands)
        if not to or name.startswith("st"):
            continue
        if MULTIPLY_ADD.match(text):
            counts[to[1]] = counts.get(to[1], 0) + 1
        else:
            others.add(to[1])
    return max((n for register, n in counts.items() if register not in others), default=0)


def cycles(loop, processor):
    """llvm-mca's cycles of one round of a loop."""
    source = "\n".join(BRANCH.sub(lambda m: m[1] + " end", t).split(" <")[0] for t in loop) + "\nend:\n"
    rounds = 200
    report = subprocess.run([f"llvm-mca-{VERSION}", "-mtriple=aarch64", f"-mcpu={processor}", f"-iterations={rounds}"],
                            input=source, check=True, capture_output=True, text=True).stdout
    return float(re.search(r"Total Cycles:\s+(\d+)", report)[1]) / rounds


def main():
    with tempfile.TemporaryDirectory() as folder:
        functions = disassemble(folder)
    tool = subprocess.run([f"llvm-mca-{VERSION}", "--version"], capture_output=True, text=True).stdout
    version = re.search(r"LLVM version (\S+)", tool)[1]
    print(f"""# NEON micro-kernels: a prediction

These figures are predicted from the machine code and not measured: no benchmark of Mercer has
run on an arm64 processor. They were made with LLVM {version} by

    python3 bench/predict_arm64.py > bench/results/arm64-prediction.md

The counts are of one pass of the unrolled inner loop of each function. Multiply-adds are the
instructions fmla and fmls of 128 bits. The limit is the number of cycles that the multiply-adds
alone take on the pipes of the processor:
""")
    for name, pipes, source in PROCESSORS:
        print(f"- {name}: {pipes['F64']} pipes in float64, {pipes['F32']} in float32 ({source})")
    print("""
A share is the limit divided by the cycles that llvm-mca predicts: at 100 % the function runs at
the maximum rate of multiply-adds. Only functions that do little else can come near 100 %: an
exponential also rounds, adds and scales, and a dot product loads two vectors for each
multiply-add.

LLVM has no model of Apple's M1 and uses the model of an older processor instead. According to
published measurements the M1 has four pipes for multiply-adds. The last column has the share
that such a processor would allow: eight instructions a cycle, of which three may be loads and
four vector instructions, and four cycles between dependent multiply-adds. No model includes
caches, memory or the clock. No model includes Apple's efficiency cores either; Mercer gives
tasks to these cores as to the other cores, one by one as they become free.
""")
    header = ["function", "instructions", "loads", "multiply-adds", "of instructions"]
    for name, _, _ in PROCESSORS:
        header += [f"{name}: cycles", "share"]
    header.append("four pipes: share")
    print("| " + " | ".join(header) + " |")
    print("|---" + "|--:" * (len(header) - 1) + "|")
    for name, use in FUNCTIONS:
        for precision, bits in ("F64", "float64"), ("F32", "float32"):
            loop = inner_loop(functions[name + precision + "NEON"])
            adds = sum(bool(MULTIPLY_ADD.match(t)) for t in loop)
            loads = sum(t.startswith(("ldr", "ldur", "ldp")) for t in loop)
            vectors = sum(bool(re.search(r"\bv\d+\.", t)) for t in loop)
            row = [f"{name}, {bits}: {use}", len(loop), loads, adds, f"{100 * adds / len(loop):.0f} %"]
            for processor, pipes, _ in PROCESSORS:
                c = cycles(loop, processor)
                row += [f"{c:.1f}", f"{100 * adds / pipes[precision] / c:.0f} %"]
            bound = max(len(loop) / 8, loads / 3, vectors / 4, 4 * longest_chain(loop))
            row.append(f"{100 * adds / 4 / bound:.0f} %")
            print("| " + " | ".join(str(x) for x in row) + " |")


if __name__ == "__main__":
    main()
