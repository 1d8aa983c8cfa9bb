package main

import "github.com/mercer-go/mercer/internal/bench"

// A benchText describes the command of a kind of measurement: its help and its flags.
type benchText struct {
	kind, short, long string
	quick             string // what --quick changes
	n, m              string // help texts of --n and --m; m is "" if the command has no --m
	devices           string // examples of --device and its default
	progress          string // the parameter that the progress line omits
	libraries         bool   // the libraries are shared libraries, and --peer-lib says where to look for them
}

// benchTexts has the texts in the order of mercer bench --help.
var benchTexts = []benchText{
	{
		kind: bench.BLASKind, short: "Matrix products, triangular solves, Cholesky: GFLOP/s against n",
		long: `Times Mercer's devices, gonum, and OpenBLAS, BLIS and MKL where their shared libraries
are on this machine, in turn and in one run, beside the multiply-adds that the
processor can make in registers (the ceiling). Every library's result is compared
with Mercer's before it is timed.

Libraries are looked for in --peer-lib, in the folders of MERCER_PEER_LIBDIR, and
where the system's loader looks. An OpenBLAS that takes the processor for an older
one is given the right core type, and the output says which one is in use.`,
		quick: "smaller matrices, fewer and shorter timings", n: "orders of the matrices", progress: "n", libraries: true,
		devices: "cpu/avx512,cpu/avx2 (default: the best there is)",
	},
	{
		kind: bench.CrossoverKind, short: "Ridge regression, primal and dual, over samples and features",
		long: `Solves ridge regressions by the primal, (XᵀX + λI)w = Xᵀy, n m² + m³/3
operations, and by the dual, (XXᵀ + λI)α = y, m n² + n³/3 operations, over a grid
of n samples and m features, and reports from how many samples on the primal is the
faster. The residual of every answer is computed by one routine and must be within
its limit.`,
		quick: "smaller problems, fewer and shorter timings", n: "numbers of samples",
		m:       "numbers of features, or a range LOW:HIGH:COUNT (default: as --n)",
		devices: "cpu,cuda/0 (default: the best there is)",
	},
	{
		kind: bench.FitKind, short: "Whole fits beside scikit-learn, LIBSVM, glmnet, gonum and others",
		long: `Times whole fits by Mercer and by the libraries that are here, in turn and in one
run: kernel ridge from arrays to α and from a CSV file to a model, the same with
Nyström's M functions, support vector regression (LIBSVM, in scikit-learn), the means
over nearest neighbors, ridge regression, a path of the lasso (glmnet) and logistic regression of two classes
(glmnet, LIBLINEAR).
Kernel, λ, precision and threads are the same for all, and the residual of every
answer is computed by one routine and printed; of the lasso and logistic regression it
is how far the objective is above its minimum, within 1e-6 for all.

--data sparse fits the texts of a table as tf-idf of character 3–4-grams, beside
scikit-learn, LIBSVM and LIBLINEAR. Its fits are svc-linear, svc-gaussian, logistic,
ridge-linear, ridge-gaussian, and read, which reads a LIBSVM file.

Libraries of Python are looked for in /usr/bin/python3 and in the python3 of PATH,
or in those of --python. They run in processes of their own; their start, imports
and the way of the data to them are not counted, transfers to a GPU and back are.`,
		quick: "fewer rows, fewer and shorter timings", n: "numbers of samples", progress: "n",
		devices: "cpu/avx512,cuda/0 (default: the best processor and every GPU)",
	},
	{
		kind: bench.ScaleKind, short: "Time, memory, residual and error of each solver against n and M",
		long: `Times each solver over growing n, and those with M functions over growing M, up to
the memory budget: time, the maximum memory on the device beside what the plan said,
how much the process grew, residual, error on rows held out, and the exponents with
which all of it grows beside those of the operations.`,
		quick: "fewer rows, fewer and shorter timings", n: "numbers of samples", progress: "n",
		m: "numbers of functions, at the largest n; the middle one is that of the other n (default: 100,200,400,800,1600; quick: 50,100,200,400)",
	},
	{
		kind: bench.DevicesKind, short: "The processor's instruction sets and GPUs, over n",
		long: `Times the devices of this machine over growing n: the Gram matrix, K·v, Cholesky,
and whole fits from arrays in memory to α in memory, transfers counted. The last
column of each table names the fastest, and so shows from which n on a GPU is faster
than the processor. Where Python has torch or cupy, they do the same in the same run.`,
		quick: "smaller n, fewer and shorter timings", n: "numbers of samples", progress: "n",
		devices: "cpu/avx512,cuda/0 (default: all that can be used but ref)",
	},
	{
		kind: bench.MNISTKind, short: "Classifiers of MNIST's handwritten digits, beside scikit-learn",
		long: `Fits classifiers to the first n training images of MNIST in the folder --images, and
predicts its 10,000 test images: exact kernel ridge regression, the same with
Nyström's M functions, and support vector classification, each beside scikit-learn
in the same run. The tables have the time of a fit, the time of the predictions, and
the fraction of wrong predictions. KernelRidge of scikit-learn stores K: it is left
out where K, its copy and the factor exceed the memory.`,
		quick: "at most 2000 images, fewer and shorter timings", n: "numbers of training images", progress: "n",
		devices: "cpu/avx512,cpu/avx2 (default: the best there is)",
	},
}
