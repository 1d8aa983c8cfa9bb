package main

/*
#include "mercer.h"

typedef const char text;
typedef const double numbers;
typedef const mercer_matrix matrix;
typedef const mercer_learner learner;
typedef const mercer_scores scores;
*/
import "C"

import (
	"context"
	"errors"
	"math"
	"unsafe"

	"github.com/mercer-go/mercer/bindings/c/internal/handles"
	"github.com/mercer-go/mercer/learners"
)

//export mercer_fit
func mercer_fit(dev C.mercer_handle, l *C.learner, x, y *C.matrix, w *C.mercer_watch, to *C.mercer_handle) C.int {
	return guard(func() error {
		if err := place("model", to != nil); err != nil {
			return err
		}
		if l == nil {
			return errors.New("libmercer: learner is NULL")
		}
		d, err := device(dev)
		if err != nil {
			return err
		}
		mx, err := matrixOf("x", x, false)
		if err != nil {
			return err
		}
		my, err := matrixOf("y", y, true)
		if err != nil {
			return err
		}
		what := handles.Learner{
			Name: textOf((*C.text)(l.name)), Task: learners.Task(textOf((*C.text)(l.task))), Parameters: textsOf(l.parameters),
			Classes: textsOf(l.classes), Features: textsOf(l.features), Targets: textsOf(l.targets), Memory: int64(l.memory),
		}
		if l.weights != nil {
			rows, _ := mx.Dims()
			if what.Weights, err = handles.Shared[float64]("weights", unsafe.Pointer(l.weights), int64(rows)); err != nil {
				return err
			}
		}
		callState := newCallState(w)
		defer callState.close()
		m, err := handles.Fit(callState.ctx, d, what, mx, my, callState.report)
		if err == nil {
			give(to, m)
		}
		return err
	})
}

// predicting calls work with a model and the matrix that it is applied to.
func predicting(dev, model C.mercer_handle, x *C.matrix, w *C.mercer_watch, work func(ctx context.Context, d *handles.Device, m *handles.Model, mx handles.Matrix) error) C.int {
	return guard(func() error {
		d, err := device(dev)
		if err != nil {
			return err
		}
		m, err := as[*handles.Model](model, "model")
		if err != nil {
			return err
		}
		mx, err := matrixOf("x", x, false)
		if err != nil {
			return err
		}
		callState := newCallState(w)
		defer callState.close()
		return work(callState.ctx, d, m, mx)
	})
}

//export mercer_predict
func mercer_predict(dev, model C.mercer_handle, wanted C.int, x *C.matrix, out *C.double, size C.size_t, w *C.mercer_watch) C.int {
	return predicting(dev, model, x, w, func(ctx context.Context, d *handles.Device, m *handles.Model, mx handles.Matrix) error {
		to, err := handles.Shared[float64]("out", unsafe.Pointer(out), int64(size))
		if err != nil {
			return err
		}
		return m.Predict(ctx, d, handles.Wanted(wanted), mx, to)
	})
}

//export mercer_intervals
func mercer_intervals(dev, model C.mercer_handle, level C.double, x *C.matrix, lower, upper *C.double, size C.size_t, w *C.mercer_watch) C.int {
	return predicting(dev, model, x, w, func(ctx context.Context, d *handles.Device, m *handles.Model, mx handles.Matrix) error {
		low, err := handles.Shared[float64]("lower", unsafe.Pointer(lower), int64(size))
		if err != nil {
			return err
		}
		high, err := handles.Shared[float64]("upper", unsafe.Pointer(upper), int64(size))
		if err != nil {
			return err
		}
		return m.Intervals(ctx, d, float64(level), mx, low, high)
	})
}

//export mercer_sets
func mercer_sets(dev, model C.mercer_handle, level C.double, x *C.matrix, out *C.double, size C.size_t, w *C.mercer_watch) C.int {
	return predicting(dev, model, x, w, func(ctx context.Context, d *handles.Device, m *handles.Model, mx handles.Matrix) error {
		to, err := handles.Shared[float64]("out", unsafe.Pointer(out), int64(size))
		if err != nil {
			return err
		}
		return m.Sets(ctx, d, float64(level), mx, to)
	})
}

//export mercer_calibrate
func mercer_calibrate(dev, model C.mercer_handle, x, y *C.matrix, w *C.mercer_watch, to *C.mercer_handle) C.int {
	return predicting(dev, model, x, w, func(ctx context.Context, d *handles.Device, m *handles.Model, mx handles.Matrix) error {
		if err := place("calibrated", to != nil); err != nil {
			return err
		}
		my, err := matrixOf("y", y, false)
		if err != nil {
			return err
		}
		calibrated, err := m.Calibrate(ctx, d, mx, my)
		if err == nil {
			give(to, calibrated)
		}
		return err
	})
}

//export mercer_array
func mercer_array(model C.mercer_handle, name *C.text, out *C.double, size C.size_t) C.int {
	return guard(func() error {
		m, err := as[*handles.Model](model, "model")
		if err != nil {
			return err
		}
		to, err := handles.Shared[float64]("out", unsafe.Pointer(out), int64(size))
		if err != nil {
			return err
		}
		return m.Array(textOf(name), to)
	})
}

//export mercer_path
func mercer_path(dev C.mercer_handle, kernel *C.text, lambdas *C.numbers, count C.size_t, x, y *C.matrix, weights *C.numbers, intercept C.int, memory C.int64_t, to *C.scores, json **C.char, w *C.mercer_watch) C.int {
	return guard(func() error {
		if err := place("scores", to != nil); err != nil {
			return err
		}
		d, err := device(dev)
		if err != nil {
			return err
		}
		mx, err := matrixOf("x", x, false)
		if err != nil {
			return err
		}
		my, err := matrixOf("y", y, false)
		if err != nil {
			return err
		}
		p := handles.PathProblem{Kernel: textOf(kernel), Intercept: intercept != 0, Memory: int64(memory)}
		if p.Lambdas, err = handles.Shared[float64]("lambdas", unsafe.Pointer(lambdas), int64(count)); err != nil {
			return err
		}
		n, t := my.Dims()
		outputs, values := int64(count)*int64(t), int64(-1) // too many
		if each := int64(n) * int64(t); int64(count) <= math.MaxInt64/each {
			values = int64(count) * each
		}
		var scores handles.PathScores
		for _, a := range []struct {
			name     string
			from     unsafe.Pointer
			to       *[]float64
			elements int64
		}{
			{"weights", unsafe.Pointer(weights), &p.Weights, int64(n)},
			{"gcv", unsafe.Pointer(to.gcv), &scores.GCV, outputs},
			{"loo", unsafe.Pointer(to.loo), &scores.LOO, outputs},
			{"errors", unsafe.Pointer(to.errors), &scores.Errors, values},
			{"freedom", unsafe.Pointer(to.freedom), &scores.Freedom, int64(count)},
		} {
			if a.from == nil {
				continue
			}
			if *a.to, err = handles.Shared[float64](a.name, a.from, a.elements); err != nil {
				return err
			}
		}
		callState := newCallState(w)
		defer callState.close()
		found, err := handles.Path(callState.ctx, d, p, mx, my, scores, callState.report)
		if err == nil && json != nil {
			*json = C.CString(found)
		}
		return err
	})
}

//export mercer_solve
func mercer_solve(dev C.mercer_handle, kernel *C.text, lambda C.double, x, y *C.matrix, a *C.double, size C.size_t, residual *C.double, w *C.mercer_watch) C.int {
	return guard(func() error {
		d, err := device(dev)
		if err != nil {
			return err
		}
		mx, err := matrixOf("x", x, false)
		if err != nil {
			return err
		}
		my, err := matrixOf("y", y, false)
		if err != nil {
			return err
		}
		to, err := handles.Shared[float64]("a", unsafe.Pointer(a), int64(size))
		if err != nil {
			return err
		}
		callState := newCallState(w)
		defer callState.close()
		left, err := handles.Solve(callState.ctx, d, textOf(kernel), float64(lambda), mx, my, to, callState.report)
		if err == nil && residual != nil {
			*residual = C.double(left)
		}
		return err
	})
}

//export mercer_factor
func mercer_factor(dev C.mercer_handle, kernel *C.text, lambda C.double, x *C.matrix, w *C.mercer_watch, to *C.mercer_handle) C.int {
	return guard(func() error {
		if err := place("factor", to != nil); err != nil {
			return err
		}
		d, err := device(dev)
		if err != nil {
			return err
		}
		mx, err := matrixOf("x", x, false)
		if err != nil {
			return err
		}
		callState := newCallState(w)
		defer callState.close()
		f, err := handles.NewFactor(callState.ctx, d, textOf(kernel), float64(lambda), mx)
		if err == nil {
			give(to, f)
		}
		return err
	})
}

//export mercer_factor_solve
func mercer_factor_solve(factor C.mercer_handle, y *C.matrix, a *C.double, size C.size_t, residual *C.double, w *C.mercer_watch) C.int {
	return guard(func() error {
		f, err := as[*handles.Factor](factor, "factor")
		if err != nil {
			return err
		}
		my, err := matrixOf("y", y, false)
		if err != nil {
			return err
		}
		to, err := handles.Shared[float64]("a", unsafe.Pointer(a), int64(size))
		if err != nil {
			return err
		}
		callState := newCallState(w)
		defer callState.close()
		left, err := f.Solve(callState.ctx, my, to, residual != nil)
		if err == nil && residual != nil {
			*residual = C.double(left)
		}
		return err
	})
}

//export mercer_factor_append
func mercer_factor_append(factor C.mercer_handle, values *C.numbers, size C.size_t) C.int {
	return guard(func() error {
		f, err := as[*handles.Factor](factor, "factor")
		if err != nil {
			return err
		}
		v, err := handles.Shared[float64]("values", unsafe.Pointer(values), int64(size))
		if err != nil {
			return err
		}
		return f.Append(context.Background(), v)
	})
}

//export mercer_factor_remove
func mercer_factor_remove(factor C.mercer_handle, i C.int64_t) C.int {
	return guard(func() error {
		f, err := as[*handles.Factor](factor, "factor")
		if err != nil {
			return err
		}
		return f.Remove(context.Background(), int(i))
	})
}
