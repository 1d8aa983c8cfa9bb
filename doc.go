// Package mercer is a numeric engine for kernel machines on CPUs and GPUs. It is the entry point
// for Go programs; the packages in its folders offer more options.
//
// # Data flow
//
//	dataset → learners → solvers → backend ─┬→ cpu   (avx512, avx2, neon, generic)
//	             │          │               ├→ cuda  (NVIDIA's libraries, found at run time)
//	             │          │               └→ ref   (plain loops: the oracle)
//	         modelfile   kernels (k(x, z) as data)
//
// Imports follow the arrows; a test checks them. The packages, from the bottom:
//
//   - host: matrices in Go memory.
//   - kernels: kernel functions k(x, z) as data, with a parser, derivatives and
//     feature maps. kernels/objects, kernels/strings, kernels/trees: kernels over
//     texts and trees. kernels/gram: operations on whole Gram matrices.
//   - backend: the interface that every device implements, the registry, and the
//     choice of a device. backend/ref: a whole backend in plain loops.
//     backend/backendtest: the suite that every backend passes.
//   - cpu: the blocked, multi-threaded backend, with micro-kernels for AVX-512, AVX2
//     and NEON and in portable Go. Its package comment shows the loops.
//   - cuda: NVIDIA GPUs, through NVIDIA's driver, cuBLAS and cuSOLVER.
//   - solvers: (K + λI)α = y by Cholesky, in mixed precision, or by preconditioned
//     conjugate gradients with K stored or not; λ paths; fits that stream rows from
//     files.
//   - internal/lsq, glm, svm, sparse, online, neighbors, evidence: the optimization problems
//     of the other learners: linear least squares, logistic regression, support vector
//     machines, relevance vectors, perceptrons, distances, Gaussian processes.
//     internal/adjoint: derivatives of Gram matrices and of solves.
//   - learners: every learner, a front end on gonum matrices. learners/validate: folds, the
//     bootstrap, scores. learners/tuning: the search for λ and kernel parameters.
//     internal/modelfile: saved models.
//   - dataset: readers of tables, and the encoding learned from the training rows.
//   - gonum: gonum's matrices without a copy, and mat.Cholesky on a device.
//   - internal/bench: the measurements of mercer bench. cmd/mercer: the command.
//   - bindings/c and bindings/python: the C shared library and the scikit-learn
//     estimators over it.
//   - gorgonia, beam and tools: nodes of Gorgonia's graphs, fits over Apache Beam, and the
//     generators of the assembly. They are separate modules, to keep their dependencies out of this
//     module.
//   - internal/atomicfile: files that are written completely or not at all. internal/required:
//     skips tests whose requirements are not met. internal/count: numbers in messages.
//
// # Where to begin
//
// The functions of this package take samples as gonum matrices or tables, and choose the device themselves. Each
// function has an example. Samples in float32 may be a host.Matrix[float32], which implements gonum's mat.Matrix. The
// packages kernels/strings, kernels/trees and kernels/gram compute Gram matrices of texts, trees and other objects,
// which any learner accepts with the kernel kernels.Precomputed.
//
//	m, err := mercer.Fit(ctx, learners.KernelRidge{Kernel: kernels.Gaussian{Sigma: 2}, Lambda: 0.1}, x, y, mercer.Options{})
//	f, err := m.Predict(ctx, points)
//
// λ is unscaled everywhere: the equation is (K + λI)α = y. λ is called alpha in scikit-learn, and
// equals n times the λ of Falkon.
package mercer
