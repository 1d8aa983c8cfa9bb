// Package validate divides samples into training and test samples, fits learners to the training
// samples and scores the models on the test samples.
//
//	folds.go       Folds, KFold, PredefinedSplits, Bootstrap: how samples are divided
//	runner.go      Runner fits a model to each division, on several devices at once
//	data.go        what a Runner divides: matrices, or the rows of a table
//	score.go       Score, of a model on samples; Measures, of several models
//	regression.go  root mean squared error, mean absolute error, R²
//	classes.go     accuracy, log loss, confusion, ROC and its area
//	outofbag.go    the bootstrap estimate of the error, and the learner's bias and variance
//	curve.go       learning curves: errors against the number of training samples
//	importance.go  by how much a score falls when a column is shuffled
//	dependence.go  the average prediction as a function of a column
//	variance.go    bias and variance on simulated data
package validate
