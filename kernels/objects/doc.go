// Package objects holds kernel functions k(a, b) over objects that are not
// vectors, given as text: strings (package strings) and trees (package trees).
//
// They have no program for a backend; they make Gram matrices. Any learner then
// works on those, through kernels.Precomputed:
//
//	k, err := objects.Parse("subsequence(length=3,decay=0.5)")
//	…
//	train, err := objects.TrainingPoints(ctx, k, texts, o)       // n × (n+2)
//	test, err := objects.OtherPoints(ctx, k, others, texts, o)   // m × (n+2)
//	model, err := mercer.Fit(ctx, learners.KernelRidge{Kernel: kernels.Precomputed{}, …}, train, y, …)
//
// A kernel is made known to Parse by the import of its package.
package objects
