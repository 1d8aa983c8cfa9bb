package pipeline

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"

	"github.com/apache/beam/sdks/v2/go/pkg/beam"
	"gonum.org/v1/gonum/mat"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/beam/internal/sums"
	"github.com/mercer-go/mercer/dataset"
	"github.com/mercer-go/mercer/internal/rowkey"
)

// partialSums holds the sums over a set of rows. It is an element of a PCollection.
type partialSums struct{ Sums *sums.Sums }

var (
	rowsSummed  = beam.NewCounter("mercer", "rows")
	partsMade   = beam.NewCounter("mercer", "parts")
	partsMerged = beam.NewCounter("mercer", "merges")
)

// devices holds the devices that this process has opened for its bundles.
var devices struct {
	sync.Mutex
	open map[string]backend.Device
}

// device returns a device, which it opens at the first call.
func device(name string) (backend.Device, error) {
	devices.Lock()
	defer devices.Unlock()
	if dev := devices.open[name]; dev != nil {
		return dev, nil
	}
	dev, err := backend.Open(name, backend.Config{})
	if err != nil {
		return nil, fmt.Errorf("pipeline: %w", err)
	}
	if devices.open == nil {
		devices.open = map[string]backend.Device{}
	}
	devices.open[name] = dev
	return dev, nil
}

// rows calls the function use for blocks of rows of the piece, with their features and targets. If there are folds, it
// also passes their keys.
func (p filePiece) rows(ctx context.Context, par Params, plan *fitPlan, use func(x, y backend.Host[float64], keys []uint64) error) error {
	enc := &dataset.Encoder{}
	if err := json.Unmarshal(plan.Encoder, enc); err != nil {
		return fmt.Errorf("pipeline: the encoder: %w", err)
	}
	return p.tables(ctx, func(t *dataset.Table, _ int64) error {
		x, err := enc.Features(t)
		if err != nil {
			return err
		}
		y, err := enc.Targets(t)
		if err != nil {
			return err
		}
		var h []uint64
		if par.Folds > 1 {
			if h, err = par.keys(t); err != nil {
				return err
			}
		}
		rowsSummed.Inc(ctx, int64(t.Rows()))
		return use(hostOf(x), signs(hostOf(y), enc.Labels), h)
	})
}

// hostOf returns m as a Host that shares its memory.
func hostOf(m *mat.Dense) backend.Host[float64] {
	raw := m.RawMatrix()
	return backend.Host[float64]{Rows: raw.Rows, Cols: raw.Cols, Stride: raw.Stride, Data: raw.Data}
}

// signs converts class indices to targets of ±1: one column for two classes, otherwise one column per class.
func signs(y backend.Host[float64], labels []string) backend.Host[float64] {
	if labels == nil {
		return y
	}
	t := 1
	if len(labels) > 2 {
		t = len(labels)
	}
	out := backend.NewHost[float64](y.Rows, t)
	for i := range y.Rows {
		class, row := int(y.Row(i)[0]), out.Row(i)
		for j := range row {
			row[j] = -1
		}
		if t > 1 {
			row[class] = 1
		} else if class == 1 {
			row[0] = 1
		}
	}
	return out
}

// fold returns the fold of the row with the key h. It is independent of the row's priority in the sample.
func fold(h uint64, seed uint64, folds int) int {
	return int(rowkey.Mix(h^rowkey.Mix(seed+0x6a09e667f3bcc909)) % uint64(folds))
}

// slots returns the number of separate sums, which is one for each kernel and fold.
func (p Params) slots(plan *fitPlan) int { return len(plan.Bases) * p.Folds }

// gramFn computes the sums over a piece, one part for each kernel and fold. The key of a part combines its slot,
// the index of the kernel and fold, and the group in which it is merged first.
type gramFn struct {
	Params Params
	group  bundleGroup
}

func (f *gramFn) StartBundle(context.Context, fitPlan, func(int, partialSums)) {
	f.group = bundleGroup{}
}

func (f *gramFn) ProcessElement(ctx context.Context, p filePiece, plan fitPlan, emit func(int, partialSums)) (err error) {
	defer markUserError(&err)
	dev, err := device(f.Params.Device)
	if err != nil {
		return err
	}
	list := make([]*sums.Gatherer, f.Params.slots(&plan))
	defer func() {
		for _, g := range list {
			if g != nil {
				g.Free()
			}
		}
	}()
	folds := f.Params.Folds
	buckets := make([][2]backend.Host[float64], folds)
	err = p.rows(ctx, f.Params, &plan, func(x, y backend.Host[float64], h []uint64) error {
		split(buckets, x, y, h, f.Params.Seed)
		for slot := range list {
			fold := buckets[slot%folds]
			if fold[0].Rows == 0 {
				continue
			}
			if list[slot] == nil {
				if list[slot], err = sums.NewGatherer(dev, plan.Bases[slot/folds], plan.Targets, plan.TargetShift); err != nil {
					return err
				}
			}
			if err := list[slot].Add(fold[0], fold[1]); err != nil {
				return fmt.Errorf("%s: %w", p.Path, err)
			}
		}
		return ctx.Err()
	})
	if err != nil {
		return err
	}
	for slot, g := range list {
		if g == nil {
			continue
		}
		s, err := g.Take()
		if err != nil {
			return err
		}
		partsMade.Inc(ctx, 1)
		emit(f.group.groupOf(p)*len(list)+slot, partialSums{s})
	}
	return nil
}

// bundleGroup is the group in which the parts of a bundle are merged: the group of its first piece. It has no
// effect on the sums.
type bundleGroup struct {
	group int
	known bool
}

func (g *bundleGroup) groupOf(p filePiece) int {
	if !g.known {
		g.group, g.known = p.group(), true
	}
	return g.group
}

// split puts the rows of fold k into buckets[k]. It does not read the keys h if there is one bucket.
func split(buckets [][2]backend.Host[float64], x, y backend.Host[float64], h []uint64, seed uint64) {
	if len(buckets) == 1 {
		buckets[0] = [2]backend.Host[float64]{x, y}
		return
	}
	for k := range buckets {
		buckets[k] = [2]backend.Host[float64]{{Cols: x.Cols, Stride: x.Cols}, {Cols: y.Cols, Stride: y.Cols}}
	}
	for i := range x.Rows {
		b := &buckets[fold(h[i], seed, len(buckets))]
		for side, row := range [][]float64{x.Row(i), y.Row(i)} {
			b[side].Data = append(b[side].Data, row...)
			b[side].Rows++
		}
	}
}

// mergeFn is the CombineFn that merges partial sums, in any order.
type mergeFn struct{}

func (mergeFn) CreateAccumulator() partialSums { return partialSums{&sums.Sums{}} }

func (mergeFn) AddInput(a, p partialSums) (partialSums, error) {
	return mergeFn{}.MergeAccumulators(a, p)
}

func (mergeFn) MergeAccumulators(a, b partialSums) (sum partialSums, err error) {
	defer markUserError(&err)
	return a, a.Sums.Merge(b.Sums)
}

// dropGroup replaces each key, which encodes a group and a slot, by the slot (see Params.slots).
type dropGroup struct{ Params Params }

func (f *dropGroup) ProcessElement(ctx context.Context, key int, p partialSums, plan fitPlan, emit func(int, partialSums)) {
	partsMerged.Inc(ctx, 1)
	emit(key%f.Params.slots(&plan), p)
}
