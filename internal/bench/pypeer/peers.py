"""The Python side of package pypeer: libraries of Python, of R (glmnet, in a separate
process) and of C (LIBLINEAR and LIBSVM, in this process) that fit the same models.

It reads commands from standard input, one JSON object a line, and answers each
with one, on what was standard output; what libraries print goes to standard
error. After {"do": "put"} and in the answer to {"do": "get"} the bytes of an
array follow, as NPY files have them after their header.

    {"do": "load", "library": "torch"}                      import it
    {"do": "put", "name": "x", "dtype": "<f8", "shape": [n, d]}
    {"do": "run", "task": "ridge", ...}                     {"seconds": ...}
    {"do": "get", "name": "alpha"}
    {"do": "clear"}                                         forget all arrays

With the argument `probe` it prints which libraries could be imported.
"""

import ctypes
import ctypes.util
import importlib.metadata
import importlib.util
import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import time


def module(name):
    return lambda: importlib.util.find_spec(name)


def has_glmnet():
    """R's package, and numpy to pass arrays to it."""
    rscript = importlib.util.find_spec("numpy") and shutil.which("Rscript")
    return rscript and subprocess.run([rscript, "-e", 'quit(status = !nzchar(system.file(package = "glmnet")))']).returncode == 0


LIBRARIES = {
    "scikit-learn": module("sklearn"), "torch": module("torch"), "cupy": module("cupy"), "gpytorch": module("gpytorch"),
    "glmnet": has_glmnet, "liblinear": lambda: importlib.util.find_spec("numpy") and ctypes.util.find_library("linear"),
    "libsvm": lambda: importlib.util.find_spec("numpy") and ctypes.util.find_library("svm"),
}


def timed(fit):
    """Return what fit returns, and the seconds that it took."""
    start = time.perf_counter()
    return fit(), time.perf_counter() - start


def probe():
    """Name the libraries that are installed, without loading them."""
    return [name for name, found in LIBRARIES.items() if found()]


class ScikitLearn:
    """KernelRidge, GaussianProcessRegressor, Nystroem + Ridge, SVR and SVC (LIBSVM), LinearSVC, Ridge, lasso_path, LogisticRegression."""

    def __init__(self):
        import joblib
        import numpy
        import scipy.sparse
        import sklearn
        import threadpoolctl
        from sklearn import gaussian_process, kernel_approximation, kernel_ridge, linear_model, neighbors, pipeline, svm

        self.np, self.joblib, self.scipy = numpy, joblib, scipy.sparse
        self.kernel_ridge, self.gp, self.approximation, self.linear_model, self.svm = (
            kernel_ridge, gaussian_process, kernel_approximation, linear_model, svm)
        self.nearest, self.pipeline = neighbors, pipeline
        self.detail = f"scikit-learn {sklearn.__version__}, numpy {numpy.__version__}, scipy {scipy.__version__}"
        for pool in threadpoolctl.threadpool_info():
            if pool["user_api"] == "blas":
                core = f" {pool['architecture']}" if pool.get("architecture") else ""
                self.detail += f", {pool['internal_api']} {pool['version']}{core}"
                break

    def ridge(self, a, p):
        m = self.kernel_ridge.KernelRidge(kernel="rbf", gamma=p["gamma"], alpha=p["lambda"])
        m.fit(a["x"], a["y"])
        return {"alpha": m.dual_coef_}

    def process(self, a, p):
        k = self.gp.kernels.RBF(length_scale=p["sigma"], length_scale_bounds="fixed")
        m = self.gp.GaussianProcessRegressor(kernel=k, alpha=p["lambda"], optimizer=None, copy_X_train=False)
        m.fit(a["x"], a["y"])
        return {"alpha": m.alpha_}

    def nystrom(self, a, p):
        m = self.approximation.Nystroem(kernel="rbf", gamma=p["gamma"], n_components=p["centers"], random_state=p["seed"])
        phi = m.fit_transform(a["x"])
        r = self.linear_model.Ridge(alpha=p["lambda"], fit_intercept=False, solver="cholesky")
        r.fit(phi, a["y"])
        return {"centers": m.components_, "beta": m.normalization_.T @ r.coef_}

    def centers(self, a, p):
        """The rows that nystrom selects with this seed."""
        rows = self.np.random.RandomState(p["seed"]).permutation(p["n"])[: p["centers"]]
        return {"rows": rows.astype("float64")}

    def svr(self, a, p):
        m = self.svm.SVR(kernel="rbf", gamma=p["gamma"], C=p["c"], epsilon=p["epsilon"], tol=p["tol"], cache_size=p["cache"] / 2**20)
        m.fit(a["x"], a["y"])
        beta = self.np.zeros(len(a["y"]))
        beta[m.support_] = m.dual_coef_[0]
        return {"beta": beta, "intercept": self.np.atleast_1d(m.intercept_)}

    def linear(self, a, p):
        m = self.linear_model.Ridge(alpha=p["lambda"])
        m.fit(a["x"], a["y"])
        return {"coef": m.coef_.reshape(-1, 1)}

    def neighbors(self, a, p):
        m = self.nearest.KNeighborsRegressor(p["k"], algorithm="brute")
        return {"values": m.fit(a["x"], a["y"]).predict(a["x"])}

    def lasso(self, a, p):
        _, coef, _ = self.linear_model.lasso_path(a["x"], a["y"], alphas=p["alphas"], tol=p["tol"], max_iter=10**6)
        return {"coef": coef}

    def logistic(self, a, p):
        m = self.linear_model.LogisticRegression(C=1 / p["lambda"], fit_intercept=False, tol=p["tol"], max_iter=10**5)
        m.fit(a["x"], a["y"])
        return {"coef": m.coef_.T}

    def mnist(self, a, p):
        """Fit x and y, and predict test."""
        if p["fit"] == "svc":
            m = self.svm.SVC(kernel="rbf", gamma=p["gamma"], C=p["c"], cache_size=p["cache"] / 2**20)
        elif p["fit"] == "nystrom":
            m = self.pipeline.make_pipeline(
                self.approximation.Nystroem(kernel="rbf", gamma=p["gamma"], n_components=p["centers"], random_state=1),
                self.linear_model.RidgeClassifier(alpha=p["lambda"]))
        else:
            m = self.kernel_ridge.KernelRidge(kernel="rbf", gamma=p["gamma"], alpha=p["lambda"])
        y = self.np.eye(10)[a["y"].astype(int)] if p["fit"] == "ridge" else a["y"]
        _, seconds = timed(lambda: m.fit(a["x"], y))
        found, predict = timed(lambda: m.predict(a["test"]))
        digits = found.argmax(axis=1) if found.ndim == 2 else found
        return {"digits": digits, "predict": self.np.array([predict]), "seconds": seconds}

    def sparse(self, a, p):
        """The samples that put has sent as the arrays of compressed sparse rows."""
        rows = len(a["y"])
        return self.scipy.csr_matrix((a["values"], a["columns"].astype("i4"), a["starts"].astype("i4")), shape=(rows, p["columns"]))

    def sparse_svc(self, a, p):
        x = self.sparse(a, p)
        m = self.svm.SVC(kernel="linear" if p["linear"] else "rbf", gamma=p["gamma"], C=1, tol=p["tol"], cache_size=p["cache"] / 2**20)
        _, seconds = timed(lambda: m.fit(x, a["y"]))
        beta = self.np.zeros(len(a["y"]))
        beta[m.support_] = m.dual_coef_.toarray()[0]
        return {"beta": beta, "intercept": self.np.atleast_1d(m.intercept_), "seconds": seconds}

    def sparse_machine(self, a, p):
        x = self.sparse(a, p)
        m = self.svm.LinearSVC(loss="hinge", C=1, tol=p["tol"], max_iter=10**6, random_state=0)
        _, seconds = timed(lambda: m.fit(x, a["y"]))
        return {"coef": m.coef_.T, "intercept": m.intercept_, "seconds": seconds}

    def sparse_logistic(self, a, p):
        x = self.sparse(a, p)
        m = self.linear_model.LogisticRegression(C=1, fit_intercept=False, tol=p["tol"], max_iter=10**5)
        _, seconds = timed(lambda: m.fit(x, a["y"]))
        return {"coef": m.coef_.T, "intercept": self.np.zeros(1), "seconds": seconds}

    def sparse_ridge(self, a, p):
        x = self.sparse(a, p)
        m = self.kernel_ridge.KernelRidge(kernel="linear" if p["linear"] else "rbf", gamma=p["gamma"], alpha=1)
        _, seconds = timed(lambda: m.fit(x, a["y"]))
        return {"alpha": m.dual_coef_, "seconds": seconds}

    def sparse_read(self, a, p):
        from sklearn.datasets import load_svmlight_file

        (x, _), seconds = timed(lambda: load_svmlight_file(p["file"]))
        return {"sum": self.np.atleast_1d(x.data.sum()), "seconds": seconds}

    def file(self, a, p):
        table = self.np.loadtxt(p["csv"], delimiter=",", skiprows=1)
        m = self.kernel_ridge.KernelRidge(kernel="rbf", gamma=p["gamma"], alpha=p["lambda"])
        m.fit(table[:, :-1], table[:, -1])
        self.joblib.dump(m, p["model"])
        return {"alpha": m.dual_coef_}

    def sync(self):
        pass

    def clear(self):
        pass


class Torch:
    """torch.linalg.cholesky on the GPU, or on the processor if there is no GPU."""

    def __init__(self):
        import torch

        self.t = torch
        self.device = "cuda" if torch.cuda.is_available() else "cpu"
        name = torch.cuda.get_device_name() if self.device == "cuda" else "on the processor"
        self.detail = f"torch {torch.__version__}, {name}"
        threads = os.environ.get("OMP_NUM_THREADS")
        if threads:
            torch.set_num_threads(int(threads))
        torch.set_grad_enabled(False)

    def gram(self, x, p):
        """exp(−‖xᵢ − xⱼ‖²/2σ²) in the memory of the products."""
        norms = (x * x).sum(1)
        k = self.t.addmm(norms[None, :], x, x.T, alpha=-2).add_(norms[:, None])
        return k.clamp_(min=0).mul_(-p["gamma"]).exp_()

    def ridge(self, a, p):
        x, y = (self.t.from_numpy(a[name]).to(self.device) for name in ("x", "y"))
        k = self.gram(x, p)
        k.diagonal().add_(p["lambda"])
        factor = self.t.linalg.cholesky(k)
        del k
        return {"alpha": self.t.cholesky_solve(y[:, None], factor)[:, 0].cpu().numpy()}

    def hold(self, a, p):
        """Store X, y and V, and for `factor` K + λI, which other libraries do not time either."""
        self.x = self.t.from_numpy(a["x"]).to(self.device)
        self.v = self.t.from_numpy(a["y"]).to(self.device)[:, None]
        if p["what"] == "factor":
            self.k = self.gram(self.x, p)
            self.k.diagonal().add_(p["lambda"])
        return {}

    def only_gram(self, a, p):
        self.out = self.gram(self.x, p)
        return {}

    def only_mul(self, a, p):
        self.out = self.gram(self.x, p) @ self.v
        return {}

    def only_factor(self, a, p):
        self.out = self.t.linalg.cholesky(self.k)
        return {}

    def sync(self):
        if self.device == "cuda":
            self.t.cuda.synchronize()

    def clear(self):
        self.x = self.v = self.k = self.out = None
        if self.device == "cuda":
            self.t.cuda.empty_cache()


class GPyTorch(Torch):
    """An RBFKernel and the exact solve of gpytorch, by Cholesky and not by CG."""

    def __init__(self):
        super().__init__()
        import gpytorch

        self.gpytorch = gpytorch
        self.detail = f"gpytorch {gpytorch.__version__}, {self.detail}"

    def ridge(self, a, p):
        x, y = (self.t.from_numpy(a[name]).to(self.device) for name in ("x", "y"))
        k = self.gpytorch.kernels.RBFKernel().to(device=self.device, dtype=x.dtype)
        k.lengthscale = p["sigma"]
        exact = self.gpytorch.settings.fast_computations(covar_root_decomposition=False, log_prob=False, solves=False)
        with exact, self.gpytorch.settings.max_cholesky_size(1 << 62):
            a = k(x).add_jitter(p["lambda"])
            solve = a.solve if hasattr(a, "solve") else a.inv_matmul
            return {"alpha": solve(y[:, None])[:, 0].cpu().numpy()}


class CuPy:
    """cupy.linalg.cholesky and two triangular solves."""

    def __init__(self):
        import cupy
        from cupyx.scipy.linalg import solve_triangular

        self.c, self.solve = cupy, solve_triangular
        name = cupy.cuda.runtime.getDeviceProperties(0)["name"].decode()
        self.detail = f"cupy {cupy.__version__}, {name}"

    def gram(self, x, p):
        norms = (x * x).sum(axis=1)
        k = x @ x.T
        k *= -2
        k += norms[None, :]
        k += norms[:, None]
        self.c.maximum(k, 0, out=k)
        k *= -p["gamma"]
        return self.c.exp(k, out=k)

    def add(self, k, p):
        k.ravel()[:: len(k) + 1] += p["lambda"]

    def ridge(self, a, p):
        x, y = self.c.asarray(a["x"]), self.c.asarray(a["y"])
        k = self.gram(x, p)
        self.add(k, p)
        factor = self.c.linalg.cholesky(k)
        del k
        half = self.solve(factor, y, lower=True)
        return {"alpha": self.c.asnumpy(self.solve(factor, half, trans=1, lower=True))}

    def hold(self, a, p):
        self.x, self.v = self.c.asarray(a["x"]), self.c.asarray(a["y"])
        if p["what"] == "factor":
            self.k = self.gram(self.x, p)
            self.add(self.k, p)
        return {}

    def only_gram(self, a, p):
        self.out = self.gram(self.x, p)
        return {}

    def only_mul(self, a, p):
        self.out = self.gram(self.x, p) @ self.v
        return {}

    def only_factor(self, a, p):
        self.out = self.c.linalg.cholesky(self.k)
        return {}

    def sync(self):
        self.c.cuda.get_current_stream().synchronize()

    def clear(self):
        self.x = self.v = self.k = self.out = None
        self.c.get_default_memory_pool().free_all_blocks()


class Glmnet:
    """R's glmnet, in a process that evaluates one line at a time; arrays are passed in files."""

    LOOP = """
        suppressMessages(library(glmnet)); glmnet.control(fdev = 0, devmax = 1)
        lines <- file("stdin", "r")
        while (length(line <- readLines(lines, 1))) cat(tryCatch(format(eval(parse(text = line)), digits = 9), error = function(e) paste("error:", conditionMessage(e))), "\\n")
    """

    def __init__(self):
        import numpy

        self.np, self.folder, self.held = numpy, tempfile.TemporaryDirectory(), None
        self.r = subprocess.Popen(["Rscript", "-e", self.LOOP], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.detail = "glmnet " + self.do('paste(packageVersion("glmnet"), R.version.string)')

    def do(self, line):
        print(line, file=self.r.stdin, flush=True)
        answer = self.r.stdout.readline().strip()
        if not answer or answer.startswith("error:"):
            raise RuntimeError(answer or "R has ended")
        return answer

    def path(self, name):
        return os.path.join(self.folder.name, name)

    def hold(self, a):
        """Give R the arrays, once."""
        if self.held is a["x"]:
            return
        for name, array in (("x", a["x"].T), ("y", a["y"])):
            self.np.ascontiguousarray(array).tofile(self.path(name))
        n, d = a["x"].shape
        self.do(f'x <- matrix(readBin("{self.path("x")}", 0, {n * d}), {n}); y <- readBin("{self.path("y")}", 0, {n}); 0')
        self.held = a["x"]

    def fit(self, a, p, penalties, settings):
        self.hold(a)
        self.np.asarray(penalties).tofile(self.path("l"))
        self.do(f'l <- readBin("{self.path("l")}", 0, {len(penalties)}); 0')
        seconds = self.do(
            "{ start <- as.numeric(Sys.time()); "
            f"m <- glmnet(x, y, lambda = l, standardize = FALSE, intercept = FALSE, thresh = {p['tol']}, maxit = 1e7, {settings}); "
            "as.numeric(Sys.time()) - start }")
        self.do(f'writeBin(as.vector(t(as.matrix(m$beta))), "{self.path("b")}"); 0')
        return {"coef": self.np.fromfile(self.path("b")).reshape(a["x"].shape[1], -1), "seconds": float(seconds)}

    def lasso(self, a, p):
        return self.fit(a, p, p["alphas"], 'family = "gaussian"')

    def logistic(self, a, p):
        return self.fit(a, p, [p["lambda"] / len(a["y"])], 'family = "binomial", alpha = 0')

    def sync(self):
        pass

    def clear(self):
        self.held = None
        self.do("{ x <- y <- m <- NULL; 0 }")


class Liblinear:
    """LIBLINEAR's trust region method for logistic regression, solver 0, and its coordinate descent
    for support vector machines, solver 3, by its C interface."""

    class Problem(ctypes.Structure):
        _fields_ = [("l", ctypes.c_int), ("n", ctypes.c_int), ("y", ctypes.c_void_p), ("x", ctypes.c_void_p), ("bias", ctypes.c_double)]

    class Parameter(ctypes.Structure):
        # Version 2.30 and older have init_sol where version 2.40 has nu; zero is right for both fields.
        _fields_ = [("solver", ctypes.c_int), ("eps", ctypes.c_double), ("c", ctypes.c_double), ("weights", ctypes.c_int),
                    ("label", ctypes.c_void_p), ("weight", ctypes.c_void_p), ("p", ctypes.c_double),
                    ("nu", ctypes.c_double), ("init_sol", ctypes.c_void_p), ("regularize_bias", ctypes.c_int)]

    def __init__(self):
        import numpy

        self.np, self.lib, self.held = numpy, ctypes.CDLL(ctypes.util.find_library("linear")), None
        self.lib.train.restype = ctypes.c_void_p
        self.lib.get_decfun_coef.restype = ctypes.c_double
        self.lib.get_decfun_coef.argtypes = [ctypes.c_void_p, ctypes.c_int, ctypes.c_int]
        self.lib.get_decfun_bias.restype = ctypes.c_double
        self.lib.get_decfun_bias.argtypes = [ctypes.c_void_p, ctypes.c_int]
        self.lib.get_labels.argtypes = [ctypes.c_void_p, ctypes.POINTER(ctypes.c_int * 2)]
        self.silent = ctypes.CFUNCTYPE(None, ctypes.c_char_p)(lambda text: None)
        self.lib.set_print_string_function(self.silent)
        self.detail = f"LIBLINEAR {ctypes.c_int.in_dll(self.lib, 'liblinear_version').value / 100:.2f}"

    def hold(self, a):
        """Store the rows in LIBLINEAR's format: index and value of each element."""
        if self.held is a["x"]:
            return
        np, (n, d) = self.np, a["x"].shape
        self.nodes = np.zeros((n, d + 1), dtype=np.dtype([("index", "i4"), ("value", "f8")], align=True))
        self.nodes["index"][:, :d] = np.arange(1, d + 1)
        self.nodes["index"][:, d] = -1
        self.nodes["value"][:, :d] = a["x"]
        self.rows = self.nodes.ctypes.data + self.nodes.strides[0] * np.arange(n, dtype=np.uintp)
        self.y = np.array(a["y"], dtype="f8")
        self.problem = self.Problem(n, d, self.y.ctypes.data, self.rows.ctypes.data, -1)
        self.held = a["x"]

    def train(self, problem, columns, **parameters):
        parameter = self.Parameter(regularize_bias=1, **parameters)
        model, seconds = timed(lambda: self.lib.train(ctypes.byref(problem), ctypes.byref(parameter)))
        labels = (ctypes.c_int * 2)()
        self.lib.get_labels(model, ctypes.byref(labels))
        one = list(labels).index(1)
        coef = [self.lib.get_decfun_coef(model, j + 1, one) for j in range(columns)]
        intercept = self.lib.get_decfun_bias(model, one)
        self.lib.free_and_destroy_model(ctypes.byref(ctypes.c_void_p(model)))
        return {"coef": self.np.array(coef)[:, None], "intercept": self.np.array([intercept]), "seconds": seconds}

    def logistic(self, a, p):
        self.hold(a)
        return self.train(self.problem, a["x"].shape[1], solver=0, eps=p["tol"], c=1 / p["lambda"])

    def sparse_logistic(self, a, p):
        nodes, rows = sparse_nodes(self.np, a)
        problem = self.Problem(len(rows), p["columns"], a["y"].ctypes.data, rows.ctypes.data, -1)
        return self.train(problem, p["columns"], solver=0, eps=p["tol"], c=1)

    def sparse_machine(self, a, p):
        nodes, rows = sparse_nodes(self.np, a, p["columns"] + 1)
        problem = self.Problem(len(rows), p["columns"] + 1, a["y"].ctypes.data, rows.ctypes.data, 1)
        return self.train(problem, p["columns"], solver=3, eps=p["tol"], c=1)

    def sync(self):
        pass

    def clear(self):
        self.held = self.nodes = None


def sparse_nodes(np, a, one=None):
    """The rows as LIBSVM and LIBLINEAR have them: nodes of index and value, and a pointer to each
    row. A row ends with a feature 1 of the index one, if that is given, and the index -1."""
    starts, n = a["starts"].astype("i8"), len(a["y"])
    last = 2 if one else 1
    nodes = np.zeros(len(a["values"]) + last * n, dtype=np.dtype([("index", "i4"), ("value", "f8")], align=True))
    at = np.arange(len(a["values"])) + last * np.repeat(np.arange(n), np.diff(starts))
    nodes["index"][at], nodes["value"][at] = a["columns"] + 1, a["values"]
    ends = starts[1:] + last * np.arange(1, n + 1) - 1
    nodes["index"][ends] = -1
    if one:
        nodes["index"][ends - 1], nodes["value"][ends - 1] = one, 1
    rows = nodes.ctypes.data + nodes.strides[0] * (starts[:-1] + last * np.arange(n)).astype(np.uintp)
    return nodes, rows.astype(np.uintp)


class Libsvm:
    """LIBSVM's support vector classification by its C interface."""

    class Problem(ctypes.Structure):
        _fields_ = [("l", ctypes.c_int), ("y", ctypes.c_void_p), ("x", ctypes.c_void_p)]

    class Parameter(ctypes.Structure):
        _fields_ = [("svm_type", ctypes.c_int), ("kernel_type", ctypes.c_int), ("degree", ctypes.c_int), ("gamma", ctypes.c_double),
                    ("coef0", ctypes.c_double), ("cache_size", ctypes.c_double), ("eps", ctypes.c_double), ("c", ctypes.c_double),
                    ("weights", ctypes.c_int), ("label", ctypes.c_void_p), ("weight", ctypes.c_void_p), ("nu", ctypes.c_double),
                    ("p", ctypes.c_double), ("shrinking", ctypes.c_int), ("probability", ctypes.c_int)]

    class Model(ctypes.Structure):
        pass

    def __init__(self):
        import numpy

        self.Model._fields_ = [("param", self.Parameter), ("classes", ctypes.c_int), ("l", ctypes.c_int), ("sv", ctypes.c_void_p),
                               ("coef", ctypes.POINTER(ctypes.POINTER(ctypes.c_double))), ("rho", ctypes.POINTER(ctypes.c_double))]
        self.np, self.lib = numpy, ctypes.CDLL(ctypes.util.find_library("svm"))
        self.lib.svm_train.restype = ctypes.POINTER(self.Model)
        self.silent = ctypes.CFUNCTYPE(None, ctypes.c_char_p)(lambda text: None)
        self.lib.svm_set_print_string_function(self.silent)
        self.detail = f"LIBSVM {ctypes.c_int.in_dll(self.lib, 'libsvm_version').value / 100:.2f}"

    def sparse_svc(self, a, p):
        np = self.np
        nodes, rows = sparse_nodes(np, a)
        problem = self.Problem(len(rows), a["y"].ctypes.data, rows.ctypes.data)
        parameter = self.Parameter(svm_type=0, kernel_type=0 if p["linear"] else 2, gamma=p["gamma"], cache_size=p["cache"] / 2**20,
                                   eps=p["tol"], c=1, shrinking=1)
        model, seconds = timed(lambda: self.lib.svm_train(ctypes.byref(problem), ctypes.byref(parameter)))
        count = model.contents.l
        labels, places = (ctypes.c_int * 2)(), (ctypes.c_int * count)()
        self.lib.svm_get_labels(model, labels)
        self.lib.svm_get_sv_indices(model, places)
        sign, beta = labels[0], np.zeros(len(rows))
        beta[np.array(places[:], dtype=int) - 1] = sign * np.array(model.contents.coef[0][:count])
        intercept = np.array([-sign * model.contents.rho[0]])
        self.lib.svm_free_and_destroy_model(ctypes.byref(model))
        return {"beta": beta, "intercept": intercept, "seconds": seconds}

    def sync(self):
        pass

    def clear(self):
        pass


CLASSES = {
    "scikit-learn": ScikitLearn, "torch": Torch, "cupy": CuPy, "gpytorch": GPyTorch, "glmnet": Glmnet, "liblinear": Liblinear,
    "libsvm": Libsvm,
}


def serve(source, sink):
    library, arrays = None, {}
    for line in source:
        command = json.loads(line)
        answer, data = {}, b""
        try:
            do = command.pop("do")
            if do == "load":
                library = CLASSES[command["library"]]()
                import numpy

                answer["detail"] = f"{library.detail}, Python {platform.python_version()}"
            elif do == "put":
                shape, kind = command["shape"], numpy.dtype(command["dtype"])
                size = kind.itemsize
                for side in shape:
                    size *= side
                arrays[command["name"]] = numpy.frombuffer(bytearray(source.read(size)), dtype=kind).reshape(shape)
            elif do == "run":
                library.sync()
                start = time.perf_counter()
                found = getattr(library, command.pop("task"))(arrays, command)
                library.sync()
                answer["seconds"] = found.pop("seconds", time.perf_counter() - start)
                arrays.update(found)
            elif do == "get":
                found = numpy.ascontiguousarray(arrays[command["name"]], dtype="<f8")
                answer["shape"], data = list(found.shape), found.tobytes()
            elif do == "clear":
                arrays.clear()
                library.clear()
            else:
                answer["error"] = f"no command is called {do}"
        except Exception as e:  # a peer that fails for any reason is left out
            answer = {"error": " ".join(f"{type(e).__name__}: {e}".split())[:300]}
        sink.write(json.dumps(answer).encode() + b"\n" + data)
        sink.flush()


if __name__ == "__main__":
    if sys.argv[1:] == ["probe"]:
        print(json.dumps(probe()))
    else:
        answers = os.fdopen(os.dup(1), "wb")
        os.dup2(2, 1)
        serve(sys.stdin.buffer, answers)
