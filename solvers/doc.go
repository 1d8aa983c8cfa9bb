// Package solvers solves the regularized least-squares problems of kernel machines. The equation is
//
//	(K + λW⁻¹) α + b·1 = y,  K_ij = k(x_i, x_j),  f(x) = Σ_i α_i k(x_i, x) + b
//
// with λ unscaled, W = diag(weights), and b = 0 unless Problem.Intercept is set (then the system
// includes 1ᵀα = 0). The solution minimizes
//
//	Σ_i w_i (y_i − f(x_i))² + λ ‖f‖²
//
// where ‖f‖ does not include b: the intercept is not penalized.
//
//	dual.go     Cholesky of the n × n matrix K + λW⁻¹ in packed storage, for every kernel
//	mixed.go    the same factor in float32 as a preconditioner of conjugate gradients in float64;
//	            and, for a GPU, dual and mixed with the factor in the memory of the host
//	cg.go       preconditioned block conjugate gradients, K stored or not (operator.go)
//	kalman.go   Cholesky of K + λW⁻¹ in O(n) operations, for one feature and a Markov kernel
//	modes.go    refinement by equispaced Fourier modes, for one to three features and a Gaussian or
//	            Matérn kernel (internal/spectrum)
//	primal.go   Cholesky of the d × d matrix XᵀWX + λI, for kernels.Linear
//	refine.go   the loop around every method for K + λW⁻¹: residual in float64, correction
//	plan.go     the list of methods, and the choice of the cheapest method by estimates of memory
//	            and time (cost.go); a new method needs a file of its own and a line in this list
//	samples.go  the checks of the samples, and the rows of weight > 0
//	checkpoint.go  the state of an iterative method in a file
//
// Methods with fewer functions than samples. They read the samples in passes, and the data need not fit into memory:
//
//	nystrom.go  M kernel functions, by normal equations or Falkon;
//	            centers.go chooses their centers
//	fourier.go  M random Fourier features
//	streamrun.go  the interface of samples read in passes, the plan, and the common code
//
// Computations beyond the solution for one λ:
//
//	cholesky.go  a factor for repeated solves, updated when samples are added or removed
//	path.go      many λ from one decomposition, with leave-one-out errors
//	             and generalized cross-validation
//	evidence.go  the log marginal likelihood and its derivatives, and the posterior variance
//	leaveoneout.go  the solutions without each sample in turn
//
// The numerics are in packages of internal: numeric (small matrices, sizes, storage), krylov
// (conjugate gradients), lowrank (preconditioners and their estimates), band (A + λI for many λ)
// and stream (least squares in passes). This package has the code that all methods share: the
// samples with their weights and centering, the plans and the checkpoints.
//
// The methods use a device only through backend.Device. Every result has the relative residual of
// its system, computed in float64 from the original data rather than from the factor.
package solvers
