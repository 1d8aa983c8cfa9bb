// Package objects defines the interface of kernel functions k(a, b) over objects that are given as
// text: strings (package strings) and trees (package trees).
//
// Any learner accepts the Gram matrices of these kernels with the kernel kernels.Precomputed:
//
//	k, err := objects.Parse("subsequence(length=3,decay=0.5)")
//	…
//	train, err := objects.TrainingPoints(ctx, k, texts, o)       // n × (n+2)
//	test, err := objects.OtherPoints(ctx, k, others, texts, o)   // m × (n+2)
//	model, err := mercer.Fit(ctx, learners.KernelRidge{Kernel: kernels.Precomputed{}, …}, train, y, …)
//
// Importing the package of a kernel registers the kernel with Parse.
package objects
