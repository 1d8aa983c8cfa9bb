package main

import (
	"context"
	"slices"
	"strings"

	"gonum.org/v1/gonum/mat"

	"github.com/mercer-go/mercer/kernels"
	"github.com/mercer-go/mercer/kernels/objects"
	"github.com/mercer-go/mercer/learners"
	"github.com/mercer-go/mercer/learners/tuning"
)

// candidate is a kernel from which the search starts.
type candidate struct {
	kernel kernels.Kernel // nil means a Gaussian kernel whose sigma is the median distance
	object objects.Kernel // a kernel on texts or trees, or nil; if not nil, the field kernel is precomputed()
}

func (c candidate) linear() bool {
	_, linear := c.kernel.(kernels.Linear)
	return linear
}

// varies reports whether a search can vary a parameter of the kernel.
func (c candidate) varies() bool { return c.kernel == nil || len(varying(c.kernel)) > 0 }

// varying returns the names of the parameters that a search can multiply by a factor.
func varying(k kernels.Kernel) []string {
	var names []string
	for _, p := range kernels.Params(k) {
		if p.Log && p.Value > 0 {
			names = append(names, p.Name)
		}
	}
	return names
}

// tuned is a candidate with the result of the search that started from it.
type tuned struct {
	candidate
	*tuning.Result
}

// name returns k as text, or the kernel on texts or trees if there is one.
func (t tuned) name(k kernels.Kernel) string {
	if t.object != nil {
		return t.object.String()
	}
	return k.String()
}

// bestIndex returns the index of the result with the best score.
func bestIndex(results []tuned) int {
	index := 0
	for i, t := range results {
		if t.Score() < results[index].Score() {
			index = i
		}
	}
	return index
}

// parseKernels returns the kernels of --kernel, or by default a candidate without a kernel.
func (f *tuneFlags) parseKernels() ([]candidate, error) {
	objectFlag := f.objects.flag()
	if len(f.kernels) == 0 {
		if objectFlag != "" {
			return nil, f.objects.missingKernelError()
		}
		return []candidate{{}}, nil
	}
	var list []candidate
	for _, text := range f.kernels {
		if objectFlag != "" {
			k, err := f.objects.parse(text)
			if err != nil {
				return nil, err
			}
			list = append(list, candidate{kernels.Precomputed{}, k})
			continue
		}
		if err := f.objects.checkFeatureKernel(text); err != nil {
			return nil, err
		}
		k, err := kernels.Parse(text)
		if err == nil {
			err = k.Check(-1)
		}
		if err != nil {
			return nil, usagef("--kernel: %s", oneLine(err))
		}
		precomputed, err := f.precomputed(text, false)
		if err != nil {
			return nil, err
		}
		if len(list) > 0 && precomputed != f.gram {
			return nil, usagef("--kernel: precomputed() takes the columns as a Gram matrix, the other kernels as features; leave precomputed() or the others out")
		}
		f.gram = precomputed
		list = append(list, candidate{kernel: k})
	}
	return list, nil
}

// checkVary returns an error for a name in --vary that is not a parameter of the kernel k, or that a search cannot
// multiply by a factor. nil stands for a Gaussian kernel.
func (f *tuneFlags) checkVary(k kernels.Kernel) error {
	text := "gaussian"
	if k == nil {
		k = kernels.Gaussian{Sigma: 1}
	} else {
		text = k.String()
	}
	names := varying(k)
	for _, name := range f.vary {
		if !slices.Contains(names, name) {
			return usagef("--vary: %s has no parameter %q that can vary%s; the parameters are: %s", text, name, didYouMean("", name, names), strings.Join(names, ", "))
		}
	}
	return nil
}

// startKernel returns a Gaussian kernel whose sigma is the median distance of the rows.
func (f *tuneFlags) startKernel(ctx context.Context, x mat.Matrix, weights []float64) (kernels.Kernel, error) {
	sigma, err := learners.MedianDistance(ctx, x, weights, f.seed)
	if err != nil {
		return nil, err
	}
	if f.ard {
		_, d := x.Dims()
		return kernels.Gaussian{Sigmas: slices.Repeat([]float64{sigma}, d)}, nil
	}
	return kernels.Gaussian{Sigma: sigma}, nil
}
