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
// makes sense. Fit takes n×d samples and n×t targets as gonum matrices and never
// changes them; whether it copies them while it works is said by the learner, and
// those that end in a solver do not copy a *mat.Dense or *mat.VecDense.
// It returns a model that is independent of them: changing x afterwards does
// not change a prediction. Fitting the same data twice on the same device gives
// the same bits.
//
// A classifier (Classifier, Prober) is fitted to an n×1 y whose different values
// name the classes: −1 and 1, 3 and 7, or with Options.Classes the places 0, 1, …
// in a list of names. Its Predict returns those values, Decision and Proba a
// column for each class. Classify makes one of any regression with several
// targets.
//
// Catalogue lists the learners. Adding one is one file:
//
//   - a struct of parameters with Fit(ctx, dev, x, y, o) → (*Model, error), and
//     the model with Learner, Dims, Predict, State; Decision and Classes for a
//     classifier; Solved or Facts for what the fit has to tell;
//   - its Description, registered by the file's init: the parameters, from which
//     come the flags of the command, how they make the learner (fitterOf), and
//     how a State makes the model;
//   - learnertest.Run in its test, which asks for all that this page promises.
//
// What they share: checked (x, y and weights that can be worked with), classesOf
// (classes of y) with Classes.targets, Classes.Decide, save and restoreClasses, predictor
// (f(x) in blocks of rows), budget (memory) and newProgress, or task, which is
// both and the device; centred and moments (linear models with an intercept and
// weights), rowCache (rows of K on demand) and smo (support vector machines). All
// products and Gram matrices go through the backend.
//
// Bad data gives an error that names row and column, counted from 1, never a
// panic. A model may be used by several goroutines at once.
package learners
