package main

import (
	"github.com/spf13/pflag"

	"github.com/mercer-go/mercer/dataset"
)

// inputFlags are the flags of the subcommands that read a table. They are for
// formats whose files do not say everything themselves.
type inputFlags struct {
	arrays []string
	labels string
}

func (f *inputFlags) add(flags *pflag.FlagSet) {
	flags.StringSliceVar(&f.arrays, "arrays", nil, "`NAMES` of the arrays of features and of targets in an NPZ file (default X,y)")
	flags.StringVar(&f.labels, "labels", "", "`FILE` of the labels of an IDX file (default: found by the name of the images)")
}

// table reads the table of a subcommand, in any format.
func (a *app) table(file string) (*dataset.Table, error) {
	return a.file(file).Read()
}

// file is the file of that name, in any format.
func (a *app) file(name string) dataset.File {
	return dataset.File{Path: name, Stdin: a.stdin, Arrays: a.input.arrays, Labels: a.input.labels}
}
