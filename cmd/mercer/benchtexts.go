package main

import "github.com/mercer-go/mercer/internal/bench"

// A benchText has the help of the command for one kind of measurement, and describes its flags.
type benchText struct {
	kind, short, long string
	quick             string // what --quick changes
	n, m              string // help texts of --n and --m; m is "" if the command has no --m
	devices           string // examples of --device and its default
	progress          string // the parameter that the progress line omits
	libraries         bool   // the compared libraries are shared libraries, and --peer-lib says where they are
}

// benchTexts has the texts in the order of mercer bench --help.
var benchTexts = []benchText{
	{
		kind: bench.BLASKind, short: "Matrix products, triangular solves, Cholesky: GFLOP/s against n",
		long: `Times operations of Mercer's devices, of gonum, and of OpenBLAS, BLIS and MKL if this
machine has their shared libraries, in turn in one run. The ceiling is the rate of
multiply-adds in registers. Before a library is timed, its result is compared with
Mercer's.

The command looks for libraries at --peer-lib, in the folders of MERCER_PEER_LIBDIR,
and where the system's loader looks. If OpenBLAS takes the processor for an older one,
the command sets the right core type; the output names the core type in use.`,
		quick: "smaller matrices, fewer and shorter timings", n: "orders of the matrices", progress: "n", libraries: true,
		devices: "cpu/avx512,cpu/avx2 (default: the best available)",
	},
	{
		kind: bench.CrossoverKind, short: "Ridge regression, primal and dual, over samples and features",
		long: `Solves ridge regressions by the primal, (XᵀX + λI)w = Xᵀy, n m² + m³/3
operations, and by the dual, (XXᵀ + λI)α = y, m n² + n³/3 operations, over a grid
of n samples and m features, and reports from how many samples on the primal is
faster. One routine computes the residual of every solution, which must be within its
limit.`,
		quick: "smaller problems, fewer and shorter timings", n: "numbers of samples",
		m:       "numbers of features, or a range LOW:HIGH:COUNT (default: as --n)",
		devices: "cpu,cuda/0 (default: the best available)",
	},
	{
		kind: bench.FitKind, short: "Fits, compared with scikit-learn, LIBSVM, glmnet, gonum and others",
		long: `Times whole fits by Mercer and by the libraries that this machine has, in turn in one
run: kernel ridge from arrays to α and from a CSV file to a model, kernel ridge with
Nyström's M functions, support vector regression (LIBSVM, in scikit-learn), means over
nearest neighbors, ridge regression, a path of the lasso (glmnet) and logistic
regression of two classes (glmnet, LIBLINEAR).
Kernel, λ, precision and threads are the same for all. One routine computes the
residual of every solution. For the lasso and logistic regression the residual is the
difference of the objective from its minimum, at most 1e-6 for all.

--data sparse fits the texts of a table as tf-idf of character 3–4-grams, beside
scikit-learn, LIBSVM and LIBLINEAR. Its fits are svc-linear, svc-gaussian, logistic,
ridge-linear, ridge-gaussian, and read, which reads a LIBSVM file.

The command looks for libraries of Python in /usr/bin/python3 and in the python3 of
PATH, or in those of --python. They run in separate processes. The times include
transfers to a GPU and back, but not the start of a process, its imports and the
transfer of the data to it.`,
		quick: "fewer rows, fewer and shorter timings", n: "numbers of samples", progress: "n",
		devices: "cpu/avx512,cuda/0 (default: the best processor and every GPU)",
	},
	{
		kind: bench.ScaleKind, short: "Time, memory, residual and error of each solver against n and M",
		long: `Times each solver for increasing n, and solvers with M functions also for increasing
M, up to the memory budget. The tables have the time, the maximum memory on the device
and the planned memory, the growth of the process, the residual, the error on held-out
rows, and the exponents with which these quantities and the operations grow.`,
		quick: "fewer rows, fewer and shorter timings", n: "numbers of samples", progress: "n",
		m: "numbers of functions at the largest n; the other n have the middle number (default: 100,200,400,800,1600; quick: 50,100,200,400)",
	},
	{
		kind: bench.DevicesKind, short: "The processor's instruction sets and GPUs, over n",
		long: `Times the devices of this machine for increasing n: the Gram matrix, K·v, Cholesky,
and whole fits from arrays in memory to α in memory, including transfers. The last
column of each table names the fastest device, and so shows from which n on a GPU is
faster than the processor. If Python has torch or cupy, the same run times them, too.`,
		quick: "smaller n, fewer and shorter timings", n: "numbers of samples", progress: "n",
		devices: "cpu/avx512,cuda/0 (default: all usable devices except ref)",
	},
	{
		kind: bench.MNISTKind, short: "Classifiers of MNIST's digits, compared with scikit-learn",
		long: `Fits classifiers to the first n training images of MNIST in the folder --images, and
predicts its 10,000 test images: exact kernel ridge regression, the same with
Nyström's M functions, and support vector classification, each beside scikit-learn
in the same run. The tables have the time of a fit, the time of the predictions, and
the fraction of wrong predictions. KernelRidge of scikit-learn stores K: it is left
out if K, its copy and the factor exceed the memory.`,
		quick: "at most 2000 images, fewer and shorter timings", n: "numbers of training images", progress: "n",
		devices: "cpu/avx512,cpu/avx2 (default: the best available)",
	},
}
