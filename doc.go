// Package mercer is the first page of a numeric engine for kernel machines;
// the code is in the folders below it.
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
//   - learners: Ridge and KernelRidge on gonum matrices.
//   - tuning: a search for the kernel's parameters and λ.
//   - dataset: files of tables in six formats, whole or in passes, and the encoding
//     learnt from them.
//   - atomicfile: files that are whole or not there.
//   - modelfile: saving and loading of fitted models.
//   - cmd/mercer: the command.
//
// # Where to begin
//
// To fit a model in a Go program, import package cpu for its registration,
// open a device and call a learner; the example of this package does so.
//
// λ is unscaled everywhere: the equation is (K + λI)α = y. It is alpha in
// scikit-learn, and n times the λ of Falkon.
package mercer
