#!/usr/bin/python3
"""Measures requests of one row over HTTP with wrk, and writes bench/results/serve.md.

    make serve-bench      (needs wrk, python3-fastapi, python3-uvicorn and python3-sklearn)

Three servers run at the same time, and only one of them has requests at any time: `mercer serve`,
scikit-learn behind FastAPI (bench/serve_fastapi.py), and a handler of net/http that reads the body and
answers a constant (tools/httpceiling). The models of the first two are the same, without an
intercept, and their predictions must agree to 1e-9. wrk sends the row of bench/serve.lua over one
connection and over eight, and again over eight with the servers bound to one processor and wrk to
another. After one second for each server that is not counted, the servers get requests in turns,
ROUNDS times SECONDS each.
"""

import contextlib
import datetime
import importlib.metadata
import json
import os
import platform
import re
import socket
import statistics
import subprocess
import tempfile
import time
import urllib.error
import urllib.request

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
MERCER = os.path.join(ROOT, "bin", "mercer")
LUA = os.path.join(ROOT, "bench", "serve.lua")
ROUNDS, SECONDS = 5, 3
SHARED, BOUND = "shared", "one each"  # the processors: wrk and the servers use all, or one each
LOADS = [(1, SHARED), (8, SHARED), (8, BOUND)]  # numbers of connections, and processors
RATE, P99 = 20, 2  # the targets: times the rate of FastAPI, and milliseconds
NAMES = {"mercer": "`mercer serve`", "fastapi": "scikit-learn behind FastAPI", "ceiling": "a constant by net/http"}


@contextlib.contextmanager
def running(*command, **options):
    """Starts a server, and ends it after use."""
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, **options)
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def predicted(url):
    """The answer of a server to the row, after the server has begun to listen."""
    with open(LUA, encoding="utf-8") as f:
        body = re.search(r"wrk\.body = '(.*)'", f.read())[1].encode()
    request = urllib.request.Request(url, body, {"Content-Type": "application/json"})
    for wait in range(100):
        try:
            with urllib.request.urlopen(request) as answer:
                return json.load(answer)["values"]["target"]
        except urllib.error.URLError:
            if wait == 99:
                raise
            time.sleep(0.2)


def bound(processor, processors):
    """The start of a command that runs on the processor alone if the processors are BOUND."""
    return ["taskset", "--cpu-list", str(processor)] if processors == BOUND else []


def wrk(url, connections, processors, seconds):
    """The result of one run of wrk, with its rate of requests."""
    out = subprocess.run([*bound(1, processors), "wrk", "-t1", f"-c{connections}", f"-d{seconds}s", "-s", LUA, url], capture_output=True, text=True, check=True).stdout
    result = json.loads(re.search("^RESULT (.*)$", out, re.M)[1])
    if result["errors"]:
        raise SystemExit(f"{url}: {result['errors']} requests failed:\n{out}")
    return {"rate": result["requests"] / result["seconds"], "p99_ms": result["p99_ms"]}


def measure(urls, rounds=ROUNDS, seconds=SECONDS):
    """The results of each server in each round, by load and server. urls has the addresses by processors and server."""
    found = {load: {name: [] for name in NAMES} for load in LOADS}
    for processors, servers in urls.items():
        for url in servers.values():
            wrk(url, 8, processors, 1)
    for _ in range(rounds):
        for (c, processors), results in found.items():
            for name, url in urls[processors].items():
                results[name].append(wrk(url, c, processors, seconds))
                print(f"{name}, {c} connections, processors {processors}: {results[name][-1]['rate']:.0f} requests/s, p99 {results[name][-1]['p99_ms']:.2f} ms", flush=True)
    return found


def median(results, key):
    return statistics.median(r[key] for r in results)


def spread(results, key, digits):
    """The median and the range of the runs, as text."""
    values = [r[key] for r in results]
    return f"{median(results, key):.{digits}f} ({min(values):.{digits}f} to {max(values):.{digits}f})"


def processor():
    with open("/proc/cpuinfo", encoding="utf-8") as f:
        fields = dict(re.findall(r"^(\S.*?)\s*: (.*)$", f.read(), re.M))
    return f"{fields.get('model name', platform.machine())} (family {fields.get('cpu family', '?')}, model {fields.get('model', '?')}), {os.cpu_count()} processors"


def versions():
    wrk_version = re.search(r"wrk \S*?(\d[\d.]*)", subprocess.run(["wrk", "-v"], capture_output=True, text=True).stdout)[1]
    go = subprocess.run(["go", "env", "GOVERSION"], capture_output=True, text=True, check=True).stdout.strip()
    packages = [f"{name} {importlib.metadata.version(package)}" for name, package in [("scikit-learn", "scikit-learn"), ("FastAPI", "fastapi"), ("uvicorn", "uvicorn")]]
    return ", ".join([go, *packages, f"Python {platform.python_version()}", f"wrk {wrk_version}"])


def page(about, found):
    rows, rates, times = [], [], []
    for (c, processors), servers in found.items():
        base, own = median(servers["fastapi"], "rate"), servers["mercer"]
        for name, results in servers.items():
            rows.append(f"| {c} | {processors} | {NAMES[name]} | {spread(results, 'rate', 0)} | {median(results, 'rate') / base:.1f} | {spread(results, 'p99_ms', 2)} |")
        with_c = ("one connection" if c == 1 else f"{c} connections") + (" and one processor each" if processors == BOUND else "")
        rates.append((median(own, "rate") / base, median(servers["ceiling"], "rate") / base, with_c))
        times.append((median(own, "p99_ms"), median(servers["ceiling"], "p99_ms"), with_c))
    said = lambda list, form: ", ".join(f"{form.format(own)} with {c} (the constant: {form.format(top)})" for own, top, c in list)  # noqa: E731
    verdict = lambda oks: "reached" if all(oks) else f"reached by {sum(oks)} of {len(oks)} loads"  # noqa: E731
    return f"""# Requests of one row over HTTP

`make serve-bench` writes this page by [bench/serve_wrk.py](../serve_wrk.py); [bench/serve_wrk.json](../serve_wrk.json)
has the figures of each run. `mercer serve` and scikit-learn behind FastAPI and uvicorn, one process each,
have the same model: kernel ridge regression on the 442 samples and ten features of testdata/diabetes.csv,
Gaussian kernel. The third server, [tools/httpceiling](../../tools/httpceiling/main.go), reads the body and answers a constant
by net/http. wrk has one thread. The servers run at the same time, and one of them has requests, in
turns: {about['rounds']} times {about['seconds']} s each. Where the processors are shared, wrk and the threads of the server compete for
them, and a request may wait for a whole time slice of the operating system. With one processor each,
the server is bound to the first processor and wrk to the second. The figures are medians, with the
range of the runs in parentheses. p99 is the time that 99 of 100 requests do not exceed.

{about['date']}; {about['processor']}; {about['versions']}.

| connections | processors | server | requests per second | times FastAPI | p99, ms |
|---|---|---|---|---|---|
{chr(10).join(rows)}

- Target: at least {RATE} times the requests per second of scikit-learn behind FastAPI. {verdict([own >= RATE for own, _, _ in rates]).capitalize()}: {said(rates, '{:.1f} ×')}.
- Target: p99 of at most {P99} ms. {verdict([own <= P99 for own, _, _ in times]).capitalize()}: {said(times, '{:.2f} ms')}.

[REJECTED.md](../REJECTED.md) has the figures of other variants of the server.
"""


def main():
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as servers:
        model = os.path.join(folder, "m.safetensors")
        subprocess.run([MERCER, "fit", "--quiet", "--learner", "kernel-ridge", "--kernel", "gaussian(sigma=5)", "--lambda", "1", "--no-intercept", "--target", "target", "--model", model,
                        os.path.join(ROOT, "testdata", "diabetes.csv")], check=True, stdout=subprocess.DEVNULL)
        urls = {}
        for processors in SHARED, BOUND:
            with socket.socket() as free:
                free.bind(("127.0.0.1", 0))
                port = free.getsockname()[1]
            one = bound(0, processors)
            servers.enter_context(running(*one, "/usr/bin/python3", "bench/serve_fastapi.py", str(port)))
            mercer = servers.enter_context(running(*one, MERCER, "serve", "--listen", "127.0.0.1:0", model))
            ceiling = servers.enter_context(running(*one, os.path.join(ROOT, "build", "httpceiling")))
            urls[processors] = {"mercer": mercer.stdout.readline().split()[0] + "predict", "fastapi": f"http://127.0.0.1:{port}/predict", "ceiling": ceiling.stdout.readline().strip()}
            f, g = predicted(urls[processors]["mercer"]), predicted(urls[processors]["fastapi"])
            if abs(f - g) > 1e-9 * abs(g):
                raise SystemExit(f"mercer predicts {f}, scikit-learn {g}")
        found = measure(urls)
    about = {"date": datetime.date.today().isoformat(), "processor": processor(), "versions": versions(), "rounds": ROUNDS, "seconds": SECONDS}
    with open(os.path.join(ROOT, "bench", "serve_wrk.json"), "w", encoding="utf-8") as f:
        json.dump(about | {"loads": [{"connections": c, "processors": processors} | results for (c, processors), results in found.items()]}, f, indent=1)
        f.write("\n")
    with open(os.path.join(ROOT, "bench", "results", "serve.md"), "w", encoding="utf-8") as f:
        f.write(page(about, found))


if __name__ == "__main__":
    main()
