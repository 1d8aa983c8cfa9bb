// Package mercer is a numeric engine for kernel machines, on processors and GPUs:
// this is its front door, and its rooms are the folders below.
//
// # The way the data goes
//
//	dataset → learners → solvers → backend ─┬→ cpu   (avx512, avx2, generic)
//	             │          │               └→ ref   (plain loops: the oracle)
//	         modelfile   kernels (k(x, z) as data)
//
// Imports follow the arrows and never turn back; a test holds them to it. The
// packages, from the bottom:
//
//   - kernels: kernel functions k(x, z) as data, with a parser, derivatives and
//     feature maps. Below it kernels/objects: kernels over texts and trees, of
//     which kernels/strings and kernels/trees hold some; kernels/gram: what is
//     done with whole Gram matrices.
//   - backend: what a processor must be able to do, and which one to use.
//   - backend/ref: a whole backend in plain loops; backend/backendtest: the
//     suite that every backend passes.
//   - cpu: the blocked, multi-threaded backend, with micro-kernels for
//     AVX-512 and AVX2 and in portable Go.
//   - solvers: (K + λI)α = y, by the dual or by the primal.
//   - solvers/adjoint: gradients through Gram matrices, solves and kernel ridge, for
//     programs that differentiate; gorgonia, a module of its own, has them as nodes
//     of Gorgonia's graphs.
//   - gonum: gonum's matrices without a copy, and mat.Cholesky on a device.
//   - learners: Ridge and KernelRidge on gonum matrices.
//   - learners/tuning: a search for the kernel's parameters and λ.
//   - dataset: files of tables in six formats, whole or in passes, and the encoding
//     learnt from them.
//   - internal/atomicfile: files that are whole or not there.
//   - learners/modelfile: saving and loading of fitted models.
//   - cmd/mercer: the command.
//   - bindings/c: the C shared library, the only package that imports C; bindings/python has
//     scikit-learn estimators over it.
//
// # Where to begin
//
// Fit, Predict, Solve and Factor of this package are the short way in, for
// programs that have their samples in gonum matrices; the examples show each.
// Behind them are the packages above, with every choice that there is:
//
//	m, err := mercer.Fit(ctx, learners.KernelRidge{Kernel: kernels.Gaussian{Sigma: 2}, Lambda: 0.1}, x, y, mercer.Options{})
//	f, err := m.Predict(ctx, points)
//
// λ is unscaled everywhere: the equation is (K + λI)α = y. It is alpha in
// scikit-learn, and n times the λ of Falkon.
package mercer
