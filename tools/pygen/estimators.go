package main

// An estimator lists its arguments in the order of its signature; arguments after * are
// keyword-only. An argument is a parameter of the catalogue, by its name in Python, or a
// convention of scikit-learn; = sets a default that differs from the catalogue's.
type estimator struct {
	name      string // without the prefix Mercer
	learner   string // "" means that the argument method names it
	task      string
	arguments string
	texts     map[string]argument // texts that differ from the catalogue
}

// everywhere lists the last arguments of every estimator.
const everywhere = "device threads verbose"

// shared lists arguments that the catalogue lacks, or describes only for the command.
var shared = map[string]argument{
	"method": {`"kernel-ridge"`, "str", ""},
	"kernel": {"None", "str, callable or None", `"linear", "rbf", "laplacian", "poly", "sigmoid", "cosine", "chi2" or "precomputed", as in scikit-learn; ` +
		`the text of a kernel of Mercer, such as "matern52(sigma=2) + 0.1*linear()"; a function of two rows, which Python calls for each pair; or None for the default of Mercer: DEFAULT.`},
	"gamma": {"None", `float > 0, "scale", "auto" or None`, `Of rbf, laplacian, poly, sigmoid and chi2. None and "auto" are 1/n_features (of chi2: 1), ` +
		`"scale" is 1/(n_features·X.var()).`},
	"degree":       {"3", "int ≥ 1", "Of poly."},
	"coef0":        {"1", "float ≥ 0", "Of poly and sigmoid."},
	"alpha":        {"", "", "The penalty λ, not scaled by the number of samples."},
	"random_state": {"None", "int, RandomState instance or None", "The seed of random choices; None is the same one every time."},
	"params":       {"None", "dict", "More parameters of the method, by Mercer's names."},
	"device":       {"None", "str", `The processor, such as "cpu/avx2"; None is the best there is, and about()["devices"] lists them.`},
	"threads":      {"None", "int", "The number of threads; None is all."},
	"verbose":      {"0", "int", "1 prints progress to stderr."},
}

// perTarget is the description of an alpha that may be an array.
var perTarget = argument{text: "The penalty λ, not scaled by the number of samples; an array has one for each target."}

// supportVectors has the texts for support vector machines.
var supportVectors = map[string]argument{
	"cache_size": {value: "200"},
	"max_iter":   {"-1", "int", "The maximum of steps; -1 is the library's own."},
	"epsilon":    {text: "Errors up to it cost nothing; in the unit of y."},
}

const kernelOf = `kernel="linear" gamma degree coef0`

var estimators = []estimator{
	{"Ridge", "ridge", "regression", "alpha * fit_intercept solver intervals", map[string]argument{
		"alpha":  perTarget,
		"solver": {text: "How the system is solved: d×d, n×n, or the cheaper of them."},
	}},
	{"KernelRidge", "kernel-ridge", "regression", "alpha * " + kernelOf + " fit_intercept=False solver tol max_iter random_state", map[string]argument{
		"alpha": perTarget,
		"solver": {text: "How the system is solved: by a Cholesky factor in float64, by one in float32 that is refined, by preconditioned conjugate gradients, " +
			"or by the one with the lowest modeled time that fits the memory."},
		"tol": {text: "The relative residual ‖(K + alpha W⁻¹)a + b − y‖ / ‖y‖ that is reached, or the fit fails."},
	}},
	{"KernelRidgeCV", "kernel-ridge", "regression", "alphas * " + kernelOf + " fit_intercept=False scoring store_cv_results alpha_per_target", map[string]argument{
		"alphas": {"(0.1, 1.0, 10.0)", "array-like of shape (n_alphas,)", "The penalties to try, finite numbers ≥ 0, as alpha of MercerKernelRidge."},
		"kernel": {kind: "str, callable, None or a list", text: `As in MercerKernelRidge. The kernels of a list are all tried; a function and "precomputed" stand by themselves.`},
		"gamma":  {kind: `float, "scale", "auto", None or a list`, text: "As in MercerKernelRidge. Each kernel that has a gamma is tried with each of a list."},
		"scoring": {"None", "str, callable or None", `None is the negative mean squared leave-one-out error, weighted by sample_weight; "gcv" the negative of ` +
			`generalized cross-validation, n‖(I − H)y‖² / tr(I − H)²; else a scorer of scikit-learn, such as "neg_mean_absolute_error", which is given the ` +
			`leave-one-out predictions (and sample_weight, where there is one).`},
		"store_cv_results": {"False", "bool", `Keep the leave-one-out errors in cv_results_. Not with scoring="gcv", which has no errors of single samples.`},
		"alpha_per_target": {"False", "bool", "Choose an alpha for each target. The kernel is that of all targets."},
	}},
	{"NystroemRidge", "nystrom-ridge", "regression", `alpha * kernel="rbf" gamma degree coef0 n_components choice fit_intercept=False solver tol random_state`, map[string]argument{
		"choice": {text: "How the centers are chosen: uniformly, or by a randomly pivoted Cholesky factor."},
		"solver": {text: "How the system is solved: by its normal equations, by conjugate gradients with their preconditioner (Falkon), or by the cheaper."},
	}},
	{"FourierRidge", "fourier-ridge", "regression", `alpha * kernel="rbf" gamma n_components orthogonal fit_intercept=False tol random_state`, map[string]argument{
		"kernel": {kind: "str or None", text: `"rbf" or "laplacian", as in scikit-learn; the text of a Gaussian, Laplacian, exponential, Matérn or rational quadratic kernel, ` +
			`of a sum or product of them, such as "matern52(sigma=2)"; or None for the default of Mercer: DEFAULT.`},
		"gamma": {text: `Of rbf and laplacian. None and "auto" are 1/n_features, "scale" is 1/(n_features·X.var()).`},
	}},
	{"GaussianProcess", "gaussian-process", "regression",
		"kernel * alpha gamma degree coef0 optimize ard n_restarts_optimizer fit_scale fit_intercept random_state", map[string]argument{
			"alpha": {text: "The variance of the noise relative to s²; where the search begins."},
		}},
	{"SVR", "svr", "regression", `* kernel="rbf" degree gamma="scale" coef0=0.0 tol C epsilon cache_size max_iter random_state`, supportVectors},
	{"Regressor", "", "regression", `method="bayes-ridge" * params`, map[string]argument{
		"method": {text: `The learner: about()["learners"] and the command "mercer learners" list them with their parameters.`},
		"params": {text: `The learner's parameters by Mercer's names, such as {"lambda": 0.1}; None is the default of each.`},
	}},
	{"OneClassSVM", "one-class-svm", "novelty", `* kernel="rbf" degree gamma="scale" coef0=0.0 tol nu cache_size max_iter random_state`, supportVectors},
	{"Classifier", "", "classification", "method * alpha C kernel=\"rbf\" gamma=\"scale\" degree coef0=0.0 fit_intercept class_weight probability tol max_iter params random_state", map[string]argument{
		"method": {text: `"kernel-ridge" and "ridge" (least squares on ±1), "kernel-logistic" and "logistic" (with probabilities), "svc", "nystrom-ridge", "fourier-ridge", ` +
			`or another of "mercer learners", whose parameters are in params.`},
		"alpha": {"None", "float", "The penalty λ of the methods that have one; of logistic it is 1/C of scikit-learn's LogisticRegression. None is the default of the method: " +
			"0.01 of kernel-logistic, 1 of the others."},
		"C":             {"1.0", "float > 0", "The penalty of svc."},
		"kernel":        {text: shared["kernel"].text[:len(shared["kernel"].text)-len(" the default of Mercer: DEFAULT.")] + " the method's own."},
		"fit_intercept": {"True", "bool", "Of the methods that have a choice; svc always has an intercept."},
		"class_weight": {"None", `dict, "balanced" or None`, `Weights of the classes, which multiply sample_weight; "balanced" is n_samples/(n_classes · the number of ` +
			`samples of the class).`},
		"probability": {"False", "bool", "Of svc: fit probabilities too, at six times the work. predict then returns the class of the largest probability, and the sign of " +
			"decision_function may differ; scikit-learn's SVC returns the class of the decision values."},
		"tol":      {"None", "float", "The accuracy at which the method ends; None is its own default."},
		"max_iter": {"None", "int", "The maximum of steps; None is the method's own default."},
	}},
}
