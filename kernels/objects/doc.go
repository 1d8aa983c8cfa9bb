// Package objects holds kernel functions k(a, b) over objects that are not
// vectors, given as text: strings (package strings) and trees (package trees).
//
// They have no program for a backend; they compute Gram matrices, which any learner accepts through
// kernels.Precomputed:
//
//	k, err := objects.Parse("subsequence(length=3,decay=0.5)")
//	…
//	train, err := objects.TrainingPoints(ctx, k, texts, o)       // n × (n+2)
//	test, err := objects.OtherPoints(ctx, k, others, texts, o)   // m × (n+2)
//	model, err := mercer.Fit(ctx, learners.KernelRidge{Kernel: kernels.Precomputed{}, …}, train, y, …)
//
// Importing the package of a kernel registers it with Parse.
package objects
