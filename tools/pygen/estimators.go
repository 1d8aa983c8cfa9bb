package main

// An estimator lists its arguments in the order of its signature; arguments after * are keyword-only. An argument
// is the Python name of a parameter of the catalogue, or a usual argument of scikit-learn; name=value sets another
// default.
type estimator struct {
	name      string // name of the estimator without the prefix Mercer
	learner   string // if empty, the user names the learner by the Python argument method
	task      string
	arguments string
	texts     map[string]argument // descriptions that differ from those in the catalogue
}

// everywhere lists the last arguments of every estimator.
const everywhere = "device threads verbose"

// shared holds descriptions of arguments that the catalogue lacks, or describes only for the command line.
var shared = map[string]argument{
	"method": {`"kernel-ridge"`, "str", ""},
	"kernel": {"None", "str, callable or None", `"linear", "rbf", "laplacian", "poly", "sigmoid", "cosine", "chi2" or "precomputed", as in scikit-learn; ` +
		`a kernel in Mercer's notation, such as "matern52(sigma=2) + 0.1*linear()"; a function of two rows, which Python calls for each pair; or None for the default of Mercer: DEFAULT.`},
	"gamma": {"None", `float > 0, "scale", "auto" or None`, `The γ of rbf, laplacian, poly, sigmoid and chi2. None and "auto" mean 1/n_features (for chi2: 1), ` +
		`"scale" means 1/(n_features·X.var()).`},
	"degree":       {"3", "int ≥ 1", "The degree of poly."},
	"coef0":        {"1", "float ≥ 0", "The constant term of poly and sigmoid."},
	"alpha":        {"", "", "The penalty λ, not scaled by the number of samples."},
	"random_state": {"None", "int, RandomState instance or None", "The seed of random choices; None means a fixed seed."},
	"params":       {"None", "dict", "More parameters of the method, by Mercer's names."},
	"device":       {"None", "str", `The processor, such as "cpu/avx2"; None means the best one, and about()["devices"] lists them all.`},
	"threads":      {"None", "int", "The number of threads; None means all."},
	"verbose":      {"0", "int", "1 prints progress to stderr."},
}

// perTarget describes the argument alpha of estimators in which alpha may be an array.
var perTarget = argument{text: "The penalty λ, not scaled by the number of samples; an array has one for each target."}

// supportVectors holds the descriptions of arguments of support vector machines.
var supportVectors = map[string]argument{
	"cache_size": {value: "200"},
	"max_iter":   {"-1", "int", "The maximum number of steps; -1 means Mercer's default."},
	"epsilon":    {text: "Errors of at most epsilon have no loss; in the units of y."},
}

const kernelOf = `kernel="linear" gamma degree coef0`

var estimators = []estimator{
	{"Ridge", "ridge", "regression", "alpha * fit_intercept solver intervals bound std fit_scale", map[string]argument{
		"alpha":  perTarget,
		"solver": {text: "How to solve the system: the d×d one, the n×n one, or the cheaper of the two."},
	}},
	{"KernelRidge", "kernel-ridge", "regression", "alpha * " + kernelOf + " fit_intercept=False solver tol max_iter random_state", map[string]argument{
		"alpha": perTarget,
		"solver": {text: "How to solve the system: by a Cholesky factor in float64, by one in float32 with iterative refinement, by preconditioned conjugate gradients, " +
			"or by the fastest method, by its estimated time, that fits the memory."},
		"tol": {text: "The largest relative residual ‖(K + alpha W⁻¹)a + b − y‖ / ‖y‖ of a solution; a fit that does not reach it fails."},
	}},
	{"KernelRidgeCV", "kernel-ridge", "regression", "alphas * " + kernelOf + " fit_intercept=False scoring store_cv_results alpha_per_target", map[string]argument{
		"alphas": {"(0.1, 1.0, 10.0)", "array-like of shape (n_alphas,)", "The penalties to try, finite numbers ≥ 0, each as the alpha of MercerKernelRidge."},
		"kernel": {kind: "str, callable, None or a list", text: `As in MercerKernelRidge. Every kernel of a list is tried; a function and "precomputed" cannot be in a list.`},
		"gamma":  {kind: `float, "scale", "auto", None or a list`, text: "As in MercerKernelRidge. Each kernel with a gamma is tried with each gamma of a list."},
		"scoring": {"None", "str, callable or None", `None means the negative mean squared leave-one-out error, weighted by sample_weight; "gcv" means the negative ` +
			`generalized cross-validation, n‖(I − H)y‖² / tr(I − H)²; anything else is a scorer of scikit-learn, such as "neg_mean_absolute_error", for the ` +
			`leave-one-out predictions (and sample_weight, if it is given).`},
		"store_cv_results": {"False", "bool", `Keep the leave-one-out errors in cv_results_. It cannot be combined with scoring="gcv", which has no errors of single samples.`},
		"alpha_per_target": {"False", "bool", "Choose an alpha for each target. All targets have the same kernel."},
	}},
	{"NystroemRidge", "nystrom-ridge", "regression", `alpha * kernel="rbf" gamma degree coef0 n_components components choice fit_intercept=False solver tol bound optimize ard std fit_scale random_state`, map[string]argument{
		"components": {"None", "array-like of shape (n_components, n_features) or None", "The centers, which need not be samples. None means that they are chosen among the samples; " +
			"otherwise n_components and choice must have their defaults."},
		"choice": {text: "How to choose the centers: uniformly, or by a randomly pivoted Cholesky factor."},
		"solver": {text: "How to solve the system: by its normal equations, by conjugate gradients with their preconditioner (Falkon), or by the cheaper of the two."},
	}},
	{"FourierRidge", "fourier-ridge", "regression", `alpha * kernel="rbf" gamma n_components fit_intercept=False tol bound optimize ard std fit_scale random_state`, map[string]argument{
		"kernel": {kind: "str or None", text: `"rbf" or "laplacian", as in scikit-learn; in Mercer's notation a Gaussian, Laplacian, exponential, Matérn or rational quadratic kernel, ` +
			`or a sum or product of them, such as "matern52(sigma=2)"; or None for the default of Mercer: DEFAULT.`},
		"gamma": {text: `The γ of rbf and laplacian. None and "auto" mean 1/n_features, "scale" means 1/(n_features·X.var()).`},
	}},
	{"GaussianProcess", "gaussian-process", "regression",
		"kernel * alpha gamma degree coef0 optimize ard n_restarts_optimizer fit_scale fit_intercept random_state", map[string]argument{
			"alpha": {text: "The variance of the noise relative to s², at which the search begins."},
		}},
	{"SVR", "svr", "regression", `* kernel="rbf" degree gamma="scale" coef0=0.0 tol C epsilon cache_size max_iter random_state`, supportVectors},
	{"NuSVR", "svr", "regression", `* nu=0.5 C kernel="rbf" degree gamma="scale" coef0=0.0 tol cache_size max_iter random_state`, supportVectors},
	{"NuSVC", "svc", "classification", `* nu=0.5 kernel="rbf" degree gamma="scale" coef0=0.0 class_weight probability tol cache_size max_iter random_state`, map[string]argument{
		"class_weight": {"None", `dict, "balanced" or None`, "Weights of the classes, which multiply sample_weight, as in MercerClassifier."},
		"cache_size":   {value: "200"},
		"max_iter":     {"-1", "int", "The maximum number of steps; -1 means Mercer's default."},
	}},
	{"Regressor", "", "regression", `method="bayes-ridge" * params`, map[string]argument{
		"method": {text: `The learner: about()["learners"] and the command "mercer learners" list them with their parameters.`},
		"params": {text: `The learner's parameters by Mercer's names, such as {"lambda": 0.1}; None means the defaults.`},
	}},
	{"OneClassSVM", "one-class-svm", "novelty", `* kernel="rbf" degree gamma="scale" coef0=0.0 tol nu cache_size max_iter random_state`, supportVectors},
	{"Classifier", "", "classification", "method * alpha C kernel=\"rbf\" gamma=\"scale\" degree coef0=0.0 fit_intercept class_weight probability tol max_iter params random_state", map[string]argument{
		"method": {text: `"kernel-ridge" and "ridge" (least squares on ±1), "kernel-logistic" and "logistic" (with probabilities), "svc", "nystrom-ridge", "fourier-ridge", ` +
			`or another of "mercer learners", whose parameters are in params.`},
		"alpha": {"None", "float", "The penalty λ of the methods that have one; for logistic it is 1/C of scikit-learn's LogisticRegression. None means the default of the method: " +
			"0.01 for kernel-logistic, 1 for the others."},
		"C":             {"1.0", "float > 0", "The penalty of svc."},
		"kernel":        {text: shared["kernel"].text[:len(shared["kernel"].text)-len(" the default of Mercer: DEFAULT.")] + " the method's own."},
		"fit_intercept": {"True", "bool", "Used by methods with an optional intercept; svc always has an intercept."},
		"class_weight": {"None", `dict, "balanced" or None`, `Weights of the classes, which multiply sample_weight; "balanced" is n_samples/(n_classes · the number of ` +
			`samples of the class).`},
		"probability": {"False", "bool", "For svc: also fit probabilities, at six times the cost. predict then returns the class of the largest probability, and the sign of " +
			"decision_function may differ; scikit-learn's SVC returns the class of the decision values."},
		"tol":      {"None", "float", "The accuracy at which the method stops; None means its own default."},
		"max_iter": {"None", "int", "The maximum number of steps; None means the method's own default."},
	}},
}
