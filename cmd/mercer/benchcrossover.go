package main

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/mercer-go/mercer/bench"
)

// gridFlag is a list of sizes: values, and ranges LOW:HIGH:COUNT, whose COUNT
// values are spaced equally in their logarithms.
type gridFlag []int

func (g *gridFlag) Type() string { return "sizes" }

func (g *gridFlag) String() string {
	var parts []string
	for _, v := range *g {
		parts = append(parts, strconv.Itoa(v))
	}
	return strings.Join(parts, ",")
}

func (g *gridFlag) Set(text string) error {
	*g = nil
	for part := range strings.SplitSeq(text, ",") {
		var numbers []int
		for word := range strings.SplitSeq(part, ":") {
			v, err := strconv.Atoi(word)
			if err != nil || v < 1 {
				return fmt.Errorf("want sizes ≥ 1 such as 100,1000 or a range LOW:HIGH:COUNT, got %q", part)
			}
			numbers = append(numbers, v)
		}
		switch {
		case len(numbers) == 1:
			*g = append(*g, numbers[0])
		case len(numbers) != 3 || numbers[0] >= numbers[1] || numbers[2] < 2:
			return fmt.Errorf("want a range LOW:HIGH:COUNT with LOW < HIGH and COUNT ≥ 2, got %q", part)
		default:
			low, high := math.Log(float64(numbers[0])), math.Log(float64(numbers[1]))
			for i := range numbers[2] {
				*g = append(*g, int(math.Round(math.Exp(low+(high-low)*float64(i)/float64(numbers[2]-1)))))
			}
		}
	}
	*g = slices.Compact(slices.Sorted(slices.Values(*g)))
	return nil
}

// crossoverFlags are the flags of `mercer bench crossover`. --device takes a list
// here, which hides the common flag of that name.
type crossoverFlags struct {
	n, m       gridFlag
	precisions []string
	devices    []string
	benchOutput
}

func (a *app) benchCrossoverCommand() *cobra.Command {
	var f crossoverFlags
	c := &cobra.Command{
		Use:   "crossover",
		Short: "Ridge regression, primal and dual, over samples and features",
		Long: `Solves ridge regressions by the primal, (XᵀX + λI)w = Xᵀy, n m² + m³/3
operations, and by the dual, (XXᵀ + λI)α = y, m n² + n³/3 operations, over a grid
of n samples and m features, and reports from how many samples on the primal is the
faster. Every time is split into Gram or covariance matrix, factor and solve; the
answers of both must agree to rounding at every point, or the run fails. The growth
of the stages is fitted and printed beside that of the operations.`,
		Args: cobra.NoArgs,
		RunE: a.work(func(ctx context.Context, _ []string) error { return a.benchCrossover(ctx, f) }),
	}
	flags := c.Flags()
	flags.Var(&f.n, "n", "numbers of samples, or a range LOW:HIGH:COUNT (default: 64:4096:7; quick: 64:2048:6)")
	flags.Var(&f.m, "m", "numbers of features, or a range LOW:HIGH:COUNT (default: as --n)")
	flags.StringSliceVar(&f.precisions, "precision", nil, "float64, float32 (default: both)")
	flags.StringSliceVar(&f.devices, "device", nil, "devices, such as cpu,cuda/0 (default: the best there is)")
	f.flags(flags, "smaller problems, fewer and shorter timings")
	return c
}

func (a *app) benchCrossover(ctx context.Context, f crossoverFlags) error {
	if a.threads < 0 {
		return usagef("--threads: must be ≥ 0, got %d", a.threads)
	}
	for _, name := range f.precisions {
		if known := []string{"float64", "float32"}; !slices.Contains(known, name) {
			return usagef("--precision: %q is not known%s; there are: %s", name, didYouMean("", name, known), strings.Join(known, ", "))
		}
	}
	for _, name := range f.devices {
		if !knownDevice(name) {
			return usagef("--device: no device is called %q; mercer devices lists them", name)
		}
	}
	if err := a.checkBench(ctx, f.benchOutput); err != nil {
		return err
	}
	c := bench.Crossover{N: f.n, M: f.m, Precisions: f.precisions, Devices: f.devices, Threads: a.threads, Memory: int64(a.memory)}
	if f.quick && c.N == nil {
		c.N = []int{64, 128, 256, 512, 1024, 2048}
	}
	if c.M == nil {
		c.M = c.N
	}
	p := a.newProgress()
	c.Runner = f.runner(p, "")
	r, err := c.Run(ctx)
	p.close()
	if err != nil {
		return err
	}
	return a.benchDone(ctx, f.benchOutput, r)
}
