package modelfile

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/dataset"
	"github.com/mercer-go/mercer/kernels"
)

// Objects are what a model was fitted to when that were texts or trees: their
// kernel, and the training objects that the points of kernels.Precomputed
// count. An encoder whose input is raw needs them.
type Objects struct {
	Kernel   string   `json:"kernel"`   // for objects.Parse
	Training []string `json:"training"` // object i is point i
}

// check returns nil when the objects are those of the encoder and the model.
func (o *Objects) check(e *dataset.Encoder, features int) error {
	raw := e != nil && e.Raw() != ""
	switch {
	case o == nil && raw:
		return fmt.Errorf("the input is a column of %ss, but there is no kernel for them", e.Raw())
	case o == nil:
		return nil
	case !raw:
		return errors.New("there is a kernel for texts or trees, but the input is no column of them")
	case len(o.Training)+2 != features:
		return fmt.Errorf("there are %d training objects, the model takes points of %d", len(o.Training), features-2)
	}
	return nil
}

// Points are as many numbers as there are training objects squared, and all but
// two of each row are kernel values among the training objects, which no
// prediction for another object looks at. They are left out of the file and
// read as 0; Bundle.Complete puts them back for variances and intervals, which
// look at them.

// trim leaves kernel values out of the arrays of points and returns their names.
func (o *Objects) trim(arrays map[string]backend.Host[float64]) (trimmed map[string]backend.Host[float64], names []string) {
	trimmed = maps.Clone(arrays)
	for _, name := range slices.Sorted(maps.Keys(arrays)) {
		if h := arrays[name]; o.arePoints(h) {
			trimmed[name] = h.View(0, 0, h.Rows, 2)
			names = append(names, name)
		}
	}
	return trimmed, names
}

// arePoints tells points of training objects by what stands in them twice: the
// kernel value of an object with itself.
func (o *Objects) arePoints(h backend.Host[float64]) bool {
	if h.Cols != len(o.Training)+2 {
		return false
	}
	for i := range h.Rows {
		row := h.Row(i)
		at := kernels.PrecomputedIndex(row[0], len(row))
		if at < 0 || row[2+at] != row[1] {
			return false
		}
	}
	return true
}

// maxPoints is the largest number of elements that points are read as.
const maxPoints = 1<<31 - 1

// pad undoes trim.
func (o *Objects) pad(arrays map[string]backend.Host[float64], names []string) (map[string]backend.Host[float64], error) {
	padded := maps.Clone(arrays)
	for _, name := range names {
		h, ok := arrays[name]
		cols := len(o.Training) + 2
		if !ok || h.Cols != 2 || h.Rows > maxPoints/cols {
			return nil, fmt.Errorf("its points %q cannot be those of %d training objects", name, len(o.Training))
		}
		full := backend.NewHost[float64](h.Rows, cols)
		for i := range h.Rows {
			row := full.Row(i)
			copy(row, h.Row(i))
			if at := kernels.PrecomputedIndex(row[0], cols); at >= 0 {
				row[2+at] = row[1]
			}
		}
		padded[name] = full
	}
	return padded, nil
}

// savedObjects is Objects in the file.
type savedObjects struct {
	Objects
	Points []string `json:"points"` // the arrays of which kernel values are left out
}

// decodeObjects reads the objects and completes the arrays.
func decodeObjects(text string, arrays map[string]backend.Host[float64]) (*Objects, map[string]backend.Host[float64], error) {
	var saved savedObjects
	d := json.NewDecoder(strings.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&saved); err != nil {
		return nil, nil, fmt.Errorf("its training objects: %w", err)
	}
	arrays, err := saved.pad(arrays, saved.Points)
	return &saved.Objects, arrays, err
}
