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

// Objects holds the kernel on texts or trees to which a model was fitted, and the training objects.
// The model's points (see kernels.Precomputed) refer to a training object by its index. A model
// whose input is a column of texts or trees requires Objects.
type Objects struct {
	Kernel   string   `json:"kernel"`   // the kernel's text for objects.Parse
	Training []string `json:"training"` // object i is point i
}

// check returns an error if the objects do not belong to the encoder and the model.
func (o *Objects) check(e *dataset.Encoder, features int) error {
	raw := e != nil && e.Raw() != ""
	switch {
	case o == nil && raw:
		return fmt.Errorf("the input column holds %ss, but no kernel for %[1]ss is given", e.Raw())
	case o == nil:
		return nil
	case !raw:
		return errors.New("a kernel for texts or trees is given, but the input column holds neither")
	case len(o.Training)+2 != features:
		return fmt.Errorf("the kernel has %d training objects, but the model takes kernel values with %d objects", len(o.Training), features-2)
	}
	return nil
}

// A row of an array of points has two numbers and then the kernel values with the training objects. The file omits
// these kernel values. Bundle.Complete computes them for variances and intervals.

// trim removes the kernel values from the arrays of points and returns the names of these arrays.
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

// arePoints reports whether h holds points of training objects: each row has the value k(x, x) of its object x twice.
func (o *Objects) arePoints(h backend.Host[float64]) bool {
	if h.Cols != len(o.Training)+2 {
		return false
	}
	for i := range h.Rows {
		row := h.Row(i)
		index := kernels.PrecomputedIndex(row[0], len(row))
		if index < 0 || row[2+index] != row[1] {
			return false
		}
	}
	return true
}

// maxPoints is the largest number of elements of an array of points.
const maxPoints = 1<<31 - 1

// pad reverses trim. It sets the removed kernel values between different objects to 0.
func (o *Objects) pad(arrays map[string]backend.Host[float64], names []string) (map[string]backend.Host[float64], error) {
	padded := maps.Clone(arrays)
	for _, name := range names {
		h, ok := arrays[name]
		cols := len(o.Training) + 2
		if !ok || h.Cols != 2 || h.Rows > maxPoints/cols {
			return nil, fmt.Errorf("its array %q does not have the shape of points of %d training objects", name, len(o.Training))
		}
		matrix := backend.NewHost[float64](h.Rows, cols)
		for i := range h.Rows {
			row := matrix.Row(i)
			copy(row, h.Row(i))
			if index := kernels.PrecomputedIndex(row[0], cols); index >= 0 {
				row[2+index] = row[1]
			}
		}
		padded[name] = matrix
	}
	return padded, nil
}

// savedObjects is the form of Objects in the file.
type savedObjects struct {
	Objects
	Points []string `json:"points"` // names of the arrays whose kernel values are omitted
}

// decodeObjects reads the objects and pads the arrays.
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
