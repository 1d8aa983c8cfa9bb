package mercer_test

import (
	"context"
	"errors"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/mercer-go/mercer"
	"github.com/mercer-go/mercer/kernels"
	"github.com/mercer-go/mercer/learners"
)

// callAll calls every exported method but Close, each that can fail must return ErrClosed
// in an error of one line, and none may panic.
func callAll(t *testing.T, name string, v any) {
	t.Helper()
	given := map[reflect.Type]reflect.Value{
		reflect.TypeFor[context.Context](): reflect.ValueOf(t.Context()),
		reflect.TypeFor[mat.Matrix]():      reflect.ValueOf(mat.NewDense(1, 1, nil)),
		reflect.TypeFor[mat.Vector]():      reflect.ValueOf(mat.NewVecDense(1, nil)),
		reflect.TypeFor[*mat.Dense]():      reflect.ValueOf(new(mat.Dense)),
		reflect.TypeFor[*mat.VecDense]():   reflect.ValueOf(new(mat.VecDense)),
	}
	of := reflect.ValueOf(v)
	for i := range of.NumMethod() {
		method, f := of.Type().Method(i).Name, of.Method(i)
		if method == "Close" {
			continue
		}
		args := make([]reflect.Value, f.Type().NumIn())
		for j := range args {
			args[j] = reflect.Zero(f.Type().In(j))
			if g, ok := given[f.Type().In(j)]; ok {
				args[j] = g
			}
		}
		results := f.Call(args)
		if len(results) == 0 || f.Type().Out(len(results)-1) != reflect.TypeFor[error]() {
			continue
		}
		err, _ := results[len(results)-1].Interface().(error)
		if !errors.Is(err, mercer.ErrClosed) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %s: %v, want ErrClosed", name, method, err)
		}
	}
}

// TestClosed: every method of a model that is closed, nil or zero, and of a factor that is
// closed, returns ErrClosed where it can fail, also a second time.
func TestClosed(t *testing.T) {
	x, y := sine()
	regression, err := mercer.Fit(t.Context(), learners.KernelRidge{Kernel: kernels.Gaussian{Sigma: 1}, Lambda: 1, NoIntercept: true}, x, y, mercer.Options{})
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "m.safetensors")
	if err := regression.Save(path); err != nil {
		t.Fatal(err)
	}
	loaded, err := mercer.Load(path, mercer.Options{})
	if err != nil {
		t.Fatal(err)
	}
	labels := mat.NewDense(100, 1, nil)
	labels.Apply(func(i, _ int, _ float64) float64 { return float64(i % 2) }, labels)
	classes, err := mercer.Fit(t.Context(), learners.KernelKNN{}, x, labels, mercer.Options{})
	if err != nil {
		t.Fatal(err)
	}
	factor, err := mercer.NewKernelFactor(t.Context(), kernels.Linear{}, 1, x, mercer.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for name, v := range map[string]interface{ Close() }{
		"regression": regression, "loaded": loaded, "neighbors": classes, "factor": factor,
		"nil":  (*mercer.Model[*learners.RidgeModel])(nil),
		"zero": &mercer.Model[*learners.RidgeModel]{},
	} {
		for range 2 {
			v.Close()
			callAll(t, name, v)
		}
	}
}

// TestCloseWaits: Close during predictions lets them end; each has its value or ErrClosed.
func TestCloseWaits(t *testing.T) {
	x, y := sine()
	for range 20 {
		m, err := mercer.Fit(t.Context(), learners.KernelRidge{Kernel: kernels.Gaussian{Sigma: 1}, Lambda: 1e-3, NoIntercept: true}, x, y, mercer.Options{})
		if err != nil {
			t.Fatal(err)
		}
		var group sync.WaitGroup
		for i := range 4 {
			group.Go(func() {
				dst := []float64{0}
				for range 50 {
					switch err := m.PredictRow(t.Context(), dst, x.RawRowView(i)); {
					case err == nil:
					case errors.Is(err, mercer.ErrClosed):
						return
					default:
						t.Error(err)
					}
					if _, _, err := m.Intervals(t.Context(), x.Slice(0, 2, 0, 1), 0.8); err != nil && !errors.Is(err, mercer.ErrClosed) {
						t.Error(err)
					}
				}
			})
		}
		group.Go(m.Close)
		group.Wait()
	}
}
