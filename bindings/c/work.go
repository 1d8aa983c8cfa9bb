package main

/*
#include "mercer.h"

typedef const char text;
typedef const double numbers;
typedef const int64_t indices;
typedef const char *const list;
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
	"github.com/mercer-go/mercer/solvers"
)

//export mercer_fit
func mercer_fit(dev C.mercer_handle, l *C.learner, x, y *C.matrix, w *C.mercer_watch, to *C.mercer_handle) C.int {
	return guard(func() error {
		if l == nil {
			return errors.New("libmercer: learner is NULL")
		}
		var a arguments
		d, mx, my := a.device(dev), a.matrix("x", x), a.optionalMatrix("y", y)
		rows, _ := mx.Dims()
		learner := handles.Learner{
			Name: textOf((*C.text)(l.name)), Task: learners.Task(textOf((*C.text)(l.task))), Parameters: textsOf(l.parameters),
			Weights: a.optional("weights", l.weights, int64(rows)),
			Centers: a.optionalMatrix("centers", l.centers),
			Classes: textsOf(l.classes), Features: textsOf(l.features), Targets: textsOf(l.targets), Memory: int64(l.memory),
		}
		return a.create(w, "model", to, func(ctx context.Context, report func(solvers.Progress)) (any, error) {
			return handles.Fit(ctx, d, learner, mx, my, report)
		})
	})
}

//export mercer_predict
func mercer_predict(dev, model C.mercer_handle, wanted C.int, x *C.matrix, out *C.double, size C.size_t, w *C.mercer_watch) C.int {
	return guard(func() error {
		var a arguments
		d, m, mx := a.device(dev), a.model(model), a.matrix("x", x)
		to := a.numbers("out", out, int64(size))
		return a.work(w, func(ctx context.Context, _ func(solvers.Progress)) error {
			return m.Predict(ctx, d, handles.Output(wanted), mx, to)
		})
	})
}

//export mercer_intervals
func mercer_intervals(dev, model C.mercer_handle, level C.double, x *C.matrix, lower, upper *C.double, size C.size_t, w *C.mercer_watch) C.int {
	return guard(func() error {
		var a arguments
		d, m, mx := a.device(dev), a.model(model), a.matrix("x", x)
		low, high := a.numbers("lower", lower, int64(size)), a.numbers("upper", upper, int64(size))
		return a.work(w, func(ctx context.Context, _ func(solvers.Progress)) error {
			return m.Intervals(ctx, d, float64(level), mx, low, high)
		})
	})
}

//export mercer_bounds
func mercer_bounds(dev, model C.mercer_handle, x *C.matrix, values, bounds *C.double, size C.size_t, w *C.mercer_watch) C.int {
	return guard(func() error {
		var a arguments
		d, m, mx := a.device(dev), a.model(model), a.matrix("x", x)
		v, b := a.numbers("values", values, int64(size)), a.numbers("bounds", bounds, int64(size))
		return a.work(w, func(ctx context.Context, _ func(solvers.Progress)) error {
			return m.Bounds(ctx, d, mx, v, b)
		})
	})
}

//export mercer_sets
func mercer_sets(dev, model C.mercer_handle, level C.double, x *C.matrix, out *C.double, size C.size_t, w *C.mercer_watch) C.int {
	return guard(func() error {
		var a arguments
		d, m, mx := a.device(dev), a.model(model), a.matrix("x", x)
		to := a.numbers("out", out, int64(size))
		return a.work(w, func(ctx context.Context, _ func(solvers.Progress)) error {
			return m.PredictionSets(ctx, d, float64(level), mx, to)
		})
	})
}

//export mercer_calibrate
func mercer_calibrate(dev, model C.mercer_handle, x, y *C.matrix, w *C.mercer_watch, to *C.mercer_handle) C.int {
	return guard(func() error {
		var a arguments
		d, m, mx, my := a.device(dev), a.model(model), a.matrix("x", x), a.matrix("y", y)
		return a.create(w, "calibrated", to, func(ctx context.Context, _ func(solvers.Progress)) (any, error) {
			return m.Calibrate(ctx, d, mx, my)
		})
	})
}

//export mercer_update
func mercer_update(dev, model C.mercer_handle, x, y *C.matrix, weights *C.numbers, remove C.int, w *C.mercer_watch, to *C.mercer_handle) C.int {
	return guard(func() error {
		var a arguments
		d, m, mx, my := a.device(dev), a.model(model), a.matrix("x", x), a.matrix("y", y)
		rows, _ := mx.Dims()
		v := a.optional("weights", weights, int64(rows))
		return a.create(w, "updated", to, func(ctx context.Context, _ func(solvers.Progress)) (any, error) {
			return m.Update(ctx, d, mx, my, v, remove != 0)
		})
	})
}

//export mercer_merge
func mercer_merge(dev, model, other C.mercer_handle, w *C.mercer_watch, to *C.mercer_handle) C.int {
	return guard(func() error {
		var a arguments
		d, m, o := a.device(dev), a.model(model), a.model(other)
		return a.create(w, "merged", to, func(ctx context.Context, _ func(solvers.Progress)) (any, error) {
			return m.Merge(ctx, d, o)
		})
	})
}

//export mercer_sample
func mercer_sample(dev, model C.mercer_handle, x *C.matrix, draws C.int64_t, seed C.uint64_t, out *C.double, size C.size_t, w *C.mercer_watch) C.int {
	return guard(func() error {
		var a arguments
		d, m, mx := a.device(dev), a.model(model), a.matrix("x", x)
		to := a.numbers("out", out, int64(size))
		return a.work(w, func(ctx context.Context, _ func(solvers.Progress)) error {
			return m.Sample(ctx, d, mx, int(draws), uint64(seed), to)
		})
	})
}

//export mercer_effects
func mercer_effects(dev, model C.mercer_handle, x *C.matrix, binary *C.indices, count C.size_t, rows, mean, deviations *C.double, size C.size_t, w *C.mercer_watch) C.int {
	return guard(func() error {
		var a arguments
		d, m, mx := a.device(dev), a.model(model), a.matrix("x", x)
		n, _ := mx.Dims()
		var columns []int64
		if count > 0 {
			columns = valueOf(&a, func() ([]int64, error) {
				return handles.Shared[int64]("binary", unsafe.Pointer(binary), int64(count))
			})
		}
		to := a.numbers("mean", mean, int64(size))
		rowEffects, errors := a.optional("rows", rows, int64(n)*int64(size)), a.optional("deviations", deviations, int64(size))
		return a.work(w, func(ctx context.Context, _ func(solvers.Progress)) error {
			return m.Effects(ctx, d, mx, columns, rowEffects, to, errors)
		})
	})
}

//export mercer_array
func mercer_array(model C.mercer_handle, name *C.text, out *C.double, size C.size_t) C.int {
	return guard(func() error {
		var a arguments
		m, to := a.model(model), a.numbers("out", out, int64(size))
		if a.err != nil {
			return a.err
		}
		return m.Array(textOf(name), to)
	})
}

//export mercer_path
func mercer_path(dev C.mercer_handle, kernel *C.text, lambdas *C.numbers, count C.size_t, x, y *C.matrix, weights *C.numbers, intercept C.int, memory C.int64_t, to *C.scores, json **C.char, w *C.mercer_watch) C.int {
	return guard(func() error {
		var a arguments
		a.requireResult("scores", to != nil)
		d, mx, my := a.device(dev), a.matrix("x", x), a.matrix("y", y)
		p := handles.PathProblem{
			Kernel: textOf(kernel), Intercept: intercept != 0, Memory: int64(memory), Names: threadNames(), Lambdas: a.numbers("lambdas", lambdas, int64(count)),
		}
		if a.err != nil {
			return a.err
		}
		n, t := my.Dims()
		outputs, values := int64(count)*int64(t), int64(-1) // -1 if count·n·t overflows
		if perPoint := int64(n) * int64(t); int64(count) <= math.MaxInt64/perPoint {
			values = int64(count) * perPoint
		}
		p.Weights = a.optional("weights", weights, int64(n))
		scores := handles.PathScores{
			GCV:              a.optional("gcv", to.gcv, outputs),
			LOO:              a.optional("loo", to.loo, outputs),
			Errors:           a.optional("errors", to.errors, values),
			DegreesOfFreedom: a.optional("freedom", to.freedom, int64(count)),
		}
		return a.work(w, func(ctx context.Context, report func(solvers.Progress)) error {
			p.Progress = report
			text, err := handles.Path(ctx, d, p, mx, my, scores)
			if err == nil && json != nil {
				*json = C.CString(text)
			}
			return err
		})
	})
}

//export mercer_solve
func mercer_solve(dev C.mercer_handle, kernel *C.text, lambda C.double, x, y *C.matrix, a *C.double, size C.size_t, residual *C.double, w *C.mercer_watch) C.int {
	return guard(func() error {
		var args arguments
		d, mx, my := args.device(dev), args.matrix("x", x), args.matrix("y", y)
		to := args.numbers("a", a, int64(size))
		return args.work(w, func(ctx context.Context, report func(solvers.Progress)) error {
			value, err := handles.Solve(ctx, d, handles.SolveProblem{Kernel: textOf(kernel), Lambda: float64(lambda), X: mx, Y: my, Progress: report}, to)
			return store(residual, value, err)
		})
	})
}

// store writes a number to the caller's memory, unless the pointer to is NULL or err is not nil.
func store(to *C.double, number float64, err error) error {
	if err == nil && to != nil {
		*to = C.double(number)
	}
	return err
}

//export mercer_gram
func mercer_gram(dev C.mercer_handle, kernel *C.text, x, z, v *C.matrix, out *C.double, size C.size_t, w *C.mercer_watch) C.int {
	return guard(func() error {
		var a arguments
		d, mx, mz, mv := a.device(dev), a.matrix("x", x), a.optionalMatrix("z", z), a.optionalMatrix("v", v)
		to := a.numbers("out", out, int64(size))
		return a.work(w, func(ctx context.Context, _ func(solvers.Progress)) error {
			return handles.Gram(ctx, d, textOf(kernel), mx, mz, mv, to)
		})
	})
}

//export mercer_text_gram
func mercer_text_gram(kernel *C.text, a, b *C.list, out *C.double, size C.size_t, w *C.mercer_watch) C.int {
	return guard(func() error {
		var args arguments
		to := args.numbers("out", out, int64(size))
		return args.work(w, func(ctx context.Context, _ func(solvers.Progress)) error {
			return handles.TextGram(ctx, textOf(kernel), textsOf((**C.char)(unsafe.Pointer(a))), textsOf((**C.char)(unsafe.Pointer(b))), to)
		})
	})
}

//export mercer_tfidf
func mercer_tfidf(settings *C.text, texts *C.list, vocabulary **C.char, features *unsafe.Pointer, size *C.size_t) C.int {
	return guard(func() error {
		var a arguments
		a.requireResult("features or size", features != nil && size != nil)
		if a.err != nil {
			return a.err
		}
		learned, data, err := handles.TFIDF(textOf(settings), textsOf((**C.char)(unsafe.Pointer(texts))), vocabulary != nil)
		if err != nil {
			return err
		}
		if vocabulary != nil {
			*vocabulary = C.CString(string(learned))
		}
		*features, *size = C.CBytes(data), C.size_t(len(data))
		return nil
	})
}

//export mercer_moments
func mercer_moments(dev C.mercer_handle, x, y *C.matrix, weights *C.numbers, intercept C.int, gram, products, means *C.double, w *C.mercer_watch) C.int {
	return guard(func() error {
		var a arguments
		d, mx, my := a.device(dev), a.matrix("x", x), a.matrix("y", y)
		if a.err != nil {
			return a.err
		}
		n, columns := mx.Dims()
		_, targets := my.Dims()
		v := a.optional("weights", weights, int64(n))
		to := handles.Moments{
			Gram:     a.numbers("gram", gram, int64(columns)*int64(columns)),
			Products: a.numbers("products", products, int64(targets)*int64(columns)),
			Means:    a.numbers("means", means, int64(columns)+int64(targets)),
		}
		return a.work(w, func(ctx context.Context, _ func(solvers.Progress)) error {
			return to.Fill(ctx, d, mx, my, v, intercept != 0)
		})
	})
}

//export mercer_neighbors
func mercer_neighbors(dev C.mercer_handle, x, z *C.matrix, k C.int64_t, rows *C.int64_t, squares *C.double, size C.size_t, w *C.mercer_watch) C.int {
	return guard(func() error {
		var a arguments
		d, mx, mz := a.device(dev), a.matrix("x", x), a.matrix("z", z)
		indices := valueOf(&a, func() ([]int64, error) { return handles.Shared[int64]("rows", unsafe.Pointer(rows), int64(size)) })
		to := a.numbers("squares", squares, int64(size))
		return a.work(w, func(ctx context.Context, _ func(solvers.Progress)) error {
			return handles.Neighbors(ctx, d, mx, mz, int(k), indices, to)
		})
	})
}

//export mercer_cosines
func mercer_cosines(dev C.mercer_handle, factor C.double, x, omega *C.matrix, b *C.numbers, out *C.double, size C.size_t, w *C.mercer_watch) C.int {
	return guard(func() error {
		var a arguments
		d, mx, mw := a.device(dev), a.matrix("x", x), a.matrix("w", omega)
		m, _ := mw.Dims()
		angles, to := a.numbers("b", b, int64(m)), a.numbers("out", out, int64(size))
		return a.work(w, func(ctx context.Context, _ func(solvers.Progress)) error {
			return handles.Cosines(ctx, d, float64(factor), mx, mw, angles, to)
		})
	})
}

//export mercer_evidence
func mercer_evidence(dev C.mercer_handle, kernel *C.text, height, lambda C.double, x, y *C.matrix, log, gradient *C.double, size C.size_t, w *C.mercer_watch) C.int {
	return guard(func() error {
		var a arguments
		a.requireResult("log", log != nil)
		d, mx, my := a.device(dev), a.matrix("x", x), a.matrix("y", y)
		to := a.optional("gradient", gradient, int64(size))
		return a.work(w, func(ctx context.Context, _ func(solvers.Progress)) error {
			value, err := handles.Evidence(ctx, d, textOf(kernel), float64(height), float64(lambda), mx, my, to)
			return store(log, value, err)
		})
	})
}

//export mercer_factor
func mercer_factor(dev C.mercer_handle, kernel *C.text, lambda C.double, x *C.matrix, w *C.mercer_watch, to *C.mercer_handle) C.int {
	return guard(func() error {
		var a arguments
		d, mx := a.device(dev), a.matrix("x", x)
		return a.create(w, "factor", to, func(ctx context.Context, _ func(solvers.Progress)) (any, error) {
			return handles.NewFactor(ctx, d, textOf(kernel), float64(lambda), mx)
		})
	})
}

//export mercer_factor_solve
func mercer_factor_solve(factor C.mercer_handle, y *C.matrix, a *C.double, size C.size_t, residual *C.double, w *C.mercer_watch) C.int {
	return guard(func() error {
		var args arguments
		f, my, to := args.factor(factor), args.matrix("y", y), args.numbers("a", a, int64(size))
		return args.work(w, func(ctx context.Context, _ func(solvers.Progress)) error {
			value, err := f.Solve(ctx, my, to, residual != nil)
			return store(residual, value, err)
		})
	})
}

//export mercer_factor_append
func mercer_factor_append(factor C.mercer_handle, values *C.numbers, size C.size_t) C.int {
	return guard(func() error {
		var a arguments
		f, v := a.factor(factor), a.numbers("values", values, int64(size))
		if a.err != nil {
			return a.err
		}
		return f.Append(context.Background(), v)
	})
}

//export mercer_factor_remove
func mercer_factor_remove(factor C.mercer_handle, i C.int64_t) C.int {
	return guard(func() error {
		var a arguments
		f := a.factor(factor)
		if a.err != nil {
			return a.err
		}
		return f.Remove(context.Background(), int(i))
	})
}
