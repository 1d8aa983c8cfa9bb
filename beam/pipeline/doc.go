// Package pipeline fits kernel ridge regression over Apache Beam: Nyström, random Fourier features,
// and linear ridge, with cross-validation over kernels and λ.
//
//	p, s := beam.NewPipelineWithRoot()
//	pipeline.Fit(s, pipeline.Params{
//		Inputs: []string{"data/train-*.csv"}, Targets: []string{"price"},
//		Learner: "nystrom-ridge", Functions: 1000, Lambdas: []float64{1},
//		Model: "price.safetensors",
//	})
//	_, err := beam.Run(ctx, "prism", p)
//
// writes the model file that `mercer predict --model price.safetensors` reads. The stages:
//
//	piece.go    globs → pieces of files of about 32 MiB, distributed to workers
//	census.go   pieces → the statistics for an encoder, and a sample of the rows
//	columns.go  the columns of pieces; some pieces lack columns because their files omit zeros
//	plan.go     the encoder, the centers or frequencies, the shifts of the targets
//	gram.go     pieces → sums of [Φ|y|1]ᵀ[Φ|y|1], merged in a tree of two levels
//	solve.go    the scores of every kernel and λ from the sums of folds, and β
//	measure.go  pieces → the residual of β, in additional passes; corrections
//	write.go    the model and the report
//	workers.go  the division of the pieces among workers of Prism
//	usererror.go the error of a DoFn, extracted from the text that runners wrap around it
//
// # Pieces
//
// The boundaries of a piece depend only on its file, not on the number of workers. Its sums have the same bits on
// every worker, and sums of pieces are merged as pairs of float64 (package sums): retrying a bundle on another
// worker does not change the model.
//
// Beam's file systems list and open the files, so gs://, s3:// and hdfs:// work if they are registered. Mercer's
// package dataset reads them. Uncompressed CSV and LIBSVM files are split at line ends, so a line break inside
// quotation marks needs Params.WholeFiles. Other formats, compressed files, and files on a file system that cannot
// seek are single pieces. If such a file has no local path, it is copied to an unnamed file on the worker's disk
// while it is read.
package pipeline
