// Package tuning searches the parameters of a kernel and the λ of kernel ridge regression.
//
// A Search varies some parameters of a kernel on logarithmic scales. For each kernel, it computes a
// path of λ (solvers.Path), which takes several times as long as one fit:
//
//	search.go    Search, its parameters and result
//	space.go     which parameters vary, and how far
//	score.go     the criteria for a kernel and a λ: leave-one-out errors,
//	             generalized cross-validation, the marginal likelihood
//	kfold.go     the errors on held-out folds
//	line.go      one common factor of all parameters: a grid, a golden section
//	bayes.go     a factor for each parameter: Bayesian search
//	gradient.go  a factor for each, by the likelihood and its derivatives
//
// SearchGrid tunes any other learner. It scores each point of a grid of parameters and kernels by cross-validation:
//
//	grid.go      SearchGrid, its axes and settings
package tuning
