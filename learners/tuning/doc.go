// Package tuning searches the parameters of a kernel and the λ of kernel ridge
// regression.
//
// A Search tries kernels, some of whose parameters vary on logarithmic scales, and for each kernel
// a whole path of λ (solvers.Path), which takes a few times as long as one fit:
//
//	search.go    Search, its parameters and result
//	space.go     which parameters vary, and how far
//	score.go     the criteria for a kernel and a λ: leave-one-out errors,
//	             generalized cross-validation, the marginal likelihood
//	kfold.go     or the errors on held-out folds
//	line.go      one common factor of all parameters: a grid, a golden section
//	bayes.go     a factor for each parameter: Bayesian search
//	gradient.go  a factor for each, by the likelihood and its derivatives
//
// Any other learner is tuned by SearchGrid, which fits each point of a grid of parameters and
// kernels by cross-validation:
//
//	grid.go      SearchGrid, its axes and settings
package tuning
