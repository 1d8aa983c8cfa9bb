package main

import (
	"github.com/mercer-go/mercer/dataset"
	"github.com/mercer-go/mercer/kernels"
)

// precomputed reports whether the kernel is precomputed(), that is, the table is a Gram matrix. It returns an error
// for a flag that has no effect on such a table.
func (f *tableFlags) precomputed(text string, stream bool) (bool, error) {
	k, err := kernels.Parse(text)
	if err != nil {
		return false, nil // the learner will report the error
	}
	isGram, err := kernels.IsPrecomputed(k)
	switch {
	case err != nil:
		return false, usagef("--kernel: %s", oneLine(err))
	case !isGram:
		return false, nil
	case f.missing == "impute":
		return false, usagef("--missing: cells of a Gram matrix cannot be imputed; leave --missing out, or give --missing refuse")
	case len(f.categorical) > 0:
		return false, usagef("--categorical: every column of a Gram matrix is numeric; leave --categorical out")
	case stream:
		return false, usagef("--stream: a Gram matrix cannot be read in passes; leave --stream out")
	}
	return true, nil
}

// holdOut splits the rows of a table into train and test. test has the given fraction of the rows, and is nil if
// fraction is 0. For a Gram matrix, train has only the columns of the training rows.
func holdOut(flag, purpose string, table *dataset.Table, fraction float64, seed uint64, r dataset.Rules) (train, test *dataset.Table, err error) {
	if fraction == 0 {
		return table, nil, nil
	}
	trainRows, testRows := dataset.SplitRows(table.Rows(), fraction, seed)
	if len(trainRows) == 0 || len(testRows) == 0 {
		return nil, nil, usagef("%s: %v of %s leaves %d for the fit and %d to %s; choose another fraction", flag, fraction, count(table.Rows(), "row"), len(trainRows), len(testRows), purpose)
	}
	train, err = r.Select(table, trainRows)
	return train, table.Select(testRows), err
}

// gramHelp is the text about precomputed() in the help of mercer fit and mercer kernels.
var gramHelp = wrapped(`With --kernel 'precomputed()' the columns other than the target are the n × n Gram matrix K of the rows, as in scikit-learn: column j has the kernel values with row j. They are not standardized, and no cell may be missing. Predict takes the m × n kernel values of m rows with the n training rows, in columns of the same names.`, 80)
