// Package learners fits models to samples. Its models predict and can be saved.
//
//	model, err := learners.KernelRidge{
//		Kernel: kernels.Gaussian{Sigma: 2},
//		Lambda: 0.1,
//	}.Fit(ctx, dev, x, y, learners.Options{})
//	f, err := model.Predict(ctx, dev, x2)
//
// A learner is a struct of its parameters. A zero field means the default value of the command's flag: for example, Fit
// fits an intercept unless NoIntercept is set. In the fields Lambda, Epsilon, Restarts and Seed, 0 means the number 0.
//
// Fit takes n×d samples and n×t targets as gonum matrices and never changes them. A model stores copies of
// samples, so a change of x after the fit does not change its predictions. Fitting the same data twice on the same
// device gives the same bits.
//
// A classifier (Classifier, Prober) is fitted to an n×1 y whose different values name the classes: −1 and 1, 3 and
// 7, or with Options.Classes the indices 0, 1, … in a list of names. The method Predict returns values of y, and
// Decision and Proba return a column for each class. Classify makes a classifier from any regression learner that
// accepts several targets.
//
// Bad data gives an error that names row and column, counted from 1, and never a panic. A model may be used by
// several goroutines at once.
//
// Catalogue lists the learners. CONTRIBUTING.md explains how to add a learner. These functions and types are
// shared by the learners:
//
//   - the steps of Fit before the solver: newFitting checks the arguments, and the methods of its result prepare
//     the samples, classes and kernel. Learners that call solvers.Solve use samples, kernelFor, kernelForRows and
//     newProgress instead. A deferred call of wrapError puts the learner's name before an error;
//   - weights: weightOf, dropZeroWeight, positiveWeights, selectPositive;
//   - classes: classesOf, Classes.targets, Classes.decide; if Description.classify is set, Classify makes the
//     classifier from the regression learner;
//   - the facts: norms.go computes norms and the noise;
//   - the solvers: solvers.Solve, solvers.SolveEach and the solvers that read rows in passes; the packages lsq,
//     glm, svm, sparse, online and neighbors in folder internal;
//   - the model: linear, kernelExpansion, linearClassifier, kernelClassifier, trainingSet with Dims, Predict,
//     Decision and getters; predictor evaluates models of other forms; fields.go saves and restores models.
//
// All products and Gram matrices go through the backend.
package learners
