// Package learners is the front of Mercer: fit a model to samples, predict,
// score, save.
//
//	model, err := learners.KernelRidge{
//		Kernel: kernels.Gaussian{Sigma: 2},
//		Lambda: 0.1,
//	}.Fit(ctx, dev, x, y, learners.Options{})
//	f, err := model.Predict(ctx, dev, x2)
//
// A learner is a struct of its parameters; its zero value is usable where that
// makes sense. Fit takes n×d samples and n×t targets as gonum matrices, never
// changes them, and does not copy a *mat.Dense or *mat.VecDense while it works.
// It returns a model that is independent of them: changing x afterwards does
// not change a prediction. Fitting the same data twice on the same device gives
// the same bits.
//
// Bad data gives an error that names row and column, counted from 1, never a
// panic. A model may be used by several goroutines at once.
package learners
