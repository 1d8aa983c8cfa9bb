package main

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"github.com/mercer-go/mercer/bench"
)

func (a *app) benchFitCommand() *cobra.Command {
	var f bench.Fit
	var o benchOutput
	c := &cobra.Command{
		Use:   "fit",
		Short: "Whole fits beside scikit-learn, LIBSVM, glmnet, gonum and others",
		Long: `Times whole fits by Mercer and by the libraries that are here, in turn and in one
run: kernel ridge from arrays to α and from a CSV file to a model, the same with
Nyström's M functions, support vector regression (LIBSVM, in scikit-learn), a path of
the lasso (glmnet) and logistic regression of two classes (glmnet, LIBLINEAR).
Kernel, λ, precision and threads are the same for all, and the residual of every
answer is computed by one routine and printed; of the lasso and logistic regression it
is how far the objective is above its minimum, within 1e-6 for all.

Libraries of Python are looked for in /usr/bin/python3 and in the python3 of PATH,
or in those of --python. They run in processes of their own; their start, imports
and the way of the data to them are not counted, transfers to a GPU and back are.`,
		Args: cobra.NoArgs,
		RunE: a.work(func(ctx context.Context, _ []string) error {
			if err := a.checkBench(ctx, o); err != nil {
				return err
			}
			if err := checkBenchLists(f.Sizes, f.Devices,
				benchList{"--fit", f.Fits, bench.Fits()},
				benchList{"--precision", f.Precisions, []string{"float64", "float32"}},
				benchList{"--peers", f.Peers, append(bench.FitPeers(), "none")}); err != nil {
				return err
			}
			if a.threads < 0 || f.Features < 1 || f.Centers < 0 {
				return usagef("--threads and --centers must be ≥ 0, --d ≥ 1; got %d, %d and %d", a.threads, f.Centers, f.Features)
			}
			if len(f.Peers) == 1 && f.Peers[0] == "none" {
				f.Peers = []string{}
			}
			if o.quick && f.Sizes == nil {
				f.Sizes = []int{500, 1000, 2000}
			}
			f.Memory, f.Threads = int64(a.memory), a.threads
			p := a.newProgress()
			f.Runner = o.runner(p, "n")
			r, err := f.Run(ctx)
			p.close()
			if err != nil {
				return err
			}
			return a.benchDone(ctx, o, r)
		}),
	}
	flags := c.Flags()
	flags.IntSliceVar(&f.Sizes, "n", nil, "numbers of samples (default: 1000,2000,4000,8000; quick: 500,1000,2000)")
	flags.IntVar(&f.Features, "d", 50, "features")
	flags.IntVar(&f.Centers, "centers", 0, "M of nystrom (default: 10√n)")
	flags.StringSliceVar(&f.Fits, "fit", nil, "fits: "+strings.Join(bench.Fits(), ", ")+" (default: all)")
	flags.StringSliceVar(&f.Precisions, "precision", nil, "float64, float32 (default: both)")
	flags.StringSliceVar(&f.Devices, "device", nil, "devices, such as cpu/avx512,cuda/0 (default: the best processor and every GPU)")
	flags.StringSliceVar(&f.Peers, "peers", bench.FitPeers(), "libraries to compare with; none for no one")
	flags.Lookup("peers").DefValue = strings.Join(bench.FitPeers(), ", ") // breaks into lines
	flags.StringSliceVar(&f.Pythons, "python", nil, "`PATH` of a Python interpreter to look for libraries in")
	o.flags(flags, "fewer rows, fewer and shorter timings")
	return c
}

// benchList is the values of a flag that takes some of a list.
type benchList struct {
	flag         string
	given, known []string
}

// checkBenchLists checks what several measurements have: numbers of rows, names
// of devices, and lists of names.
func checkBenchLists(sizes []int, devices []string, lists ...benchList) error {
	for _, l := range lists {
		for _, name := range l.given {
			if err := knownName(l.flag, name, l.known); err != nil {
				return err
			}
		}
	}
	for _, n := range sizes {
		if n < 1 {
			return usagef("--n: must be ≥ 1, got %d", n)
		}
	}
	for _, name := range devices {
		if !knownDevice(name) {
			return usagef("--device: no device is called %q; mercer devices lists them", name)
		}
	}
	return nil
}

func knownName(flag, name string, known []string) error {
	for _, k := range known {
		if k == name {
			return nil
		}
	}
	return usagef("%s: %q is not known%s; there are: %s", flag, name, didYouMean("", name, known), strings.Join(known, ", "))
}
