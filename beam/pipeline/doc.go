// Package pipeline fits kernel ridge regression over Apache Beam: Nyström, random
// Fourier features, and linear ridge, with cross-validation over kernels and λ.
//
//	p, s := beam.NewPipelineWithRoot()
//	pipeline.Fit(s, pipeline.Params{
//		Inputs: []string{"data/train-*.csv"}, Targets: []string{"price"},
//		Learner: "nystrom-ridge", Functions: 1000, Lambdas: []float64{1},
//		Model: "price.safetensors",
//	})
//	_, err := beam.Run(ctx, "prism", p)
//
// writes what `mercer predict --model price.safetensors` reads. The stages:
//
//	piece.go    globs → pieces of files of some 32 MiB, which are handed out
//	census.go   pieces → what an encoder needs to know, and a sample of the rows
//	columns.go  which pieces belong together: columns of files that leave zeros out
//	plan.go     the encoder, the centers or frequencies, the offsets
//	gram.go     pieces → sums of [Φ|y|1]ᵀ[Φ|y|1], merged in a tree of two levels
//	solve.go    the scores of every kernel and λ from the sums of folds, and β
//	measure.go  pieces → the residual of β, in passes of their own; corrections
//	write.go    the model and the report
//	usererror.go the error of a DoFn, extracted from what runners wrap around it
//
// # Pieces
//
// A piece is made by its place in its file and not by the workers there are.
// Its sums have the same bits whoever makes them, and sums of pieces are merged as
// pairs of float64 (package sums): a bundle that is tried again, on another worker
// and beside other bundles, changes nothing. DoFns keep nothing from one element
// to the next but which group their parts are merged in.
//
// Files are listed and opened by Beam's file systems, so that gs://, s3:// and
// hdfs:// work where they are registered; what is in them is read by Mercer's
// package dataset, and not by textio or parquetio: it knows every format that
// mercer fit knows, gives numbers instead of lines or structs, and makes the
// encoder that is stored with the model. Beam's io would also make an element, which
// costs about a microsecond, of each row; here it is of each piece. CSV and LIBSVM
// that are not compressed are cut at line ends, so a line break inside quotation
// marks needs Params.WholeFiles. Other formats, compressed files, and files on a file
// system that cannot seek are pieces as a whole; without a local path they are copied
// to the worker's disk while they are read, to a file without a name, of which nothing
// is left when the worker is lost.
package pipeline
