package bench

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/dataset"
	"github.com/mercer-go/mercer/internal/bench/pypeer"
	"github.com/mercer-go/mercer/kernels"
	"github.com/mercer-go/mercer/learners"
)

// MNISTKind measures classifiers of MNIST's handwritten digits (LeCun, Bottou, Bengio and Haffner
// 1998): the time of a fit to the first n training images, the time of predicting the 10,000 test
// images, and the fraction of the test images that is classified wrongly:
//
//	ridge    exact kernel ridge regression of the ten indicators, λ = 0.1
//	nystrom  like ridge, with kernel functions at only M of the images
//	svc      support vector classification, one classifier for each pair of classes, C = 10
//
// A pixel is a number from 0 to 1. All fits use the Gaussian kernel with σ = 5. scikit-learn fits
// KernelRidge if its matrices fit into the memory, RidgeClassifier on Nystroem, and SVC.
const MNISTKind = "mnist"

const (
	mnistSigma  = 5
	mnistLambda = 0.1
	mnistC      = 10
	mnistCache  = 2 << 30 // bytes of each cache for rows of K, in LIBSVM and Mercer
	chance      = 0.9     // error rate of a classifier that always predicts the same one of the ten digits
)

type mnistBench struct {
	*setup
	x, y     *mat.Dense // pixels and digits of all training images
	test     *mat.Dense
	expected []float64 // digits of the test images
}

func runMNIST(ctx context.Context, b Benchmark) (*Result, error) {
	c := &mnistBench{}
	if err := c.read(b.Images); err != nil {
		return nil, err
	}
	if n := slices.Max(b.Sizes); n > c.x.RawMatrix().Rows {
		return nil, &OptionError{Kind: MNISTKind, Option: "n", Problem: fmt.Sprintf("must be ≤ %d, the number of training images, got %d", c.x.RawMatrix().Rows, n)}
	}
	var err error
	c.setup, err = b.open(ctx)
	defer c.close()
	if err != nil {
		return nil, err
	}
	var list []Implementation
	for _, d := range c.devices {
		list = append(list, ownImplementation(d))
	}
	for _, p := range c.peers {
		list = append(list, p.implementation(c.Threads[0]))
	}
	r, err := b.Runner.Run(ctx, MNISTKind, list, c.tasks(c.start))
	if err != nil {
		return nil, err
	}
	r.Notes = append(c.methods,
		fmt.Sprintf("data: the first n of %d training images, %d pixels from 0 to 1; %d test images", c.x.RawMatrix().Rows, c.x.RawMatrix().Cols, len(c.expected)),
		fmt.Sprintf("Gaussian kernel, σ = %d; ridge and nystrom: λ = %g; nystrom: M = %d; svc: C = %d, a cache of 2 GiB", mnistSigma, mnistLambda, c.Centers, mnistC),
		"scikit-learn: KernelRidge, which has no intercept, RidgeClassifier on Nystroem, SVC (LIBSVM)",
	)
	return r, nil
}

// read reads the four files of MNIST in a folder, compressed or not.
func (c *mnistBench) read(folder string) error {
	var encoder *dataset.Encoder
	for _, set := range []struct {
		prefix string
		to     func(x, y *mat.Dense)
	}{
		{"train", func(x, y *mat.Dense) { c.x, c.y = x, y }},
		{"t10k", func(x, y *mat.Dense) { c.test, c.expected = x, y.RawMatrix().Data }},
	} {
		paths, err := filepath.Glob(filepath.Join(folder, "*"+set.prefix+"-images*"))
		if err != nil || len(paths) == 0 {
			return &OptionError{Kind: MNISTKind, Option: "images", Problem: fmt.Sprintf("%s has no file %s-images-idx3-ubyte, compressed or not", folder, set.prefix)}
		}
		t, err := dataset.Read(paths[0], nil)
		if err != nil {
			return err
		}
		if encoder == nil {
			if encoder, err = dataset.Learn(t, dataset.Rules{Targets: []string{"label"}}); err != nil {
				return err
			}
		}
		x, errX := encoder.Features(t)
		y, errY := encoder.Targets(t)
		if err := errors.Join(errX, errY); err != nil {
			return err
		}
		floats.Scale(1.0/255, x.RawMatrix().Data)
		set.to(x, y)
	}
	return nil
}

func (c *mnistBench) fit(name string, dev backend.Device, x, y *mat.Dense) (learners.Model, error) {
	kernel := kernels.Gaussian{Sigma: mnistSigma}
	o := learners.Options{Memory: c.Memory}
	if name == "svc" {
		return learners.SVC{Kernel: kernel, C: mnistC, Cache: mnistCache}.Fit(c.ctx, dev, x, y, o)
	}
	indicators := mat.NewDense(len(y.RawMatrix().Data), 10, nil)
	for i, digit := range y.RawMatrix().Data {
		indicators.Set(i, int(digit), 1)
	}
	if name == "nystrom" {
		return learners.NystromRidge{Kernel: kernel, Lambda: mnistLambda, Centers: c.Centers}.Fit(c.ctx, dev, x, indicators, o)
	}
	return learners.KernelRidge{Kernel: kernel, Lambda: mnistLambda}.Fit(c.ctx, dev, x, indicators, o)
}

// digits returns the predicted digits. predictions has either one column of digits, or ten indicators.
func digits(predictions *mat.Dense) []float64 {
	rows, columns := predictions.Dims()
	out := make([]float64, rows)
	for i := range out {
		if out[i] = predictions.At(i, 0); columns > 1 {
			out[i] = float64(floats.MaxIdx(predictions.RawRowView(i)))
		}
	}
	return out
}

// predicted sets the check and the metrics of e. predict returns the digits of the test images and the time.
func (c *mnistBench) predicted(e *Entry, predict func() (digits []float64, seconds float64, err error)) {
	metrics := map[string]float64{}
	e.Metrics = func() map[string]float64 { return metrics }
	e.Check = func() *Check {
		return checked(chance, func() (errorRate float64, err error) {
			digits, seconds, err := predict()
			for i, digit := range c.expected {
				if i >= len(digits) || digits[i] != digit {
					errorRate++
				}
			}
			errorRate /= float64(len(c.expected))
			metrics[errorMetric], metrics[predictMetric] = errorRate, seconds
			return errorRate, err
		})
	}
}

func (c *mnistBench) start(_ context.Context, name, _ string, threads, n int) ([]Entry, error) {
	x, y := c.x.Slice(0, n, 0, c.x.RawMatrix().Cols).(*mat.Dense), c.y.Slice(0, n, 0, 1).(*mat.Dense)
	var list []Entry
	for _, dev := range c.devices {
		var model learners.Model
		e := Entry{Implementation: ownName(dev), Run: func() (err error) {
			model, err = c.fit(name, dev, x, y)
			return err
		}}
		c.predicted(&e, func() ([]float64, float64, error) {
			start := time.Now()
			predictions, err := model.Predict(c.ctx, dev, c.test)
			if err != nil {
				return nil, 0, err
			}
			return digits(predictions), time.Since(start).Seconds(), nil
		})
		list = append(list, e)
	}
	for _, p := range c.peers {
		list = append(list, c.byPeer(p, name, x, y))
	}
	return list, nil
}

// byPeer returns the entry of scikit-learn.
func (c *mnistBench) byPeer(p Peer, name string, x, y *mat.Dense) Entry {
	e := Entry{Implementation: p.Name, Reason: p.Missing, Optional: true}
	n := x.RawMatrix().Rows
	if bytes := 3 * 8 * int64(n) * int64(n); name == "ridge" && bytes > c.judges.Info().Memory { // K, a copy of K and the factor
		e.Reason = "needs " + strconv.FormatInt(bytes>>30, 10) + " GiB for three n × n matrices"
	}
	if e.Reason != "" {
		return e
	}
	e.Close = func() { _ = p.Python.Clear() } // ignore an error: if the process has ended, the next case reports it
	sent, duration := false, time.Duration(0)
	e.Before = func() error {
		if sent {
			return nil
		}
		sent = true
		rows, columns := c.test.Dims()
		return errors.Join(pypeer.Put(p.Python, "x", n, columns, x.RawMatrix().Data[:n*columns]), pypeer.Put(p.Python, "y", n, 0, y.RawMatrix().Data[:n]),
			pypeer.Put(p.Python, "test", rows, columns, c.test.RawMatrix().Data))
	}
	parameters := map[string]any{"fit": name, "gamma": 1.0 / (2 * mnistSigma * mnistSigma), "lambda": mnistLambda, "c": mnistC, "centers": c.Centers, "cache": mnistCache}
	e.Run = func() (err error) {
		duration, err = p.Python.Run("mnist", parameters)
		return err
	}
	e.Took = func() time.Duration { return duration }
	c.predicted(&e, func() ([]float64, float64, error) {
		digits, err := p.Python.Get("digits")
		predict, errPredict := p.Python.Get("predict")
		if err = errors.Join(err, errPredict); err != nil {
			return nil, 0, err
		}
		return digits.Data, predict.Data[0], nil
	})
	return e
}

func mnistReport(r *Result, p *Report) {
	p.Title = "Handwritten digits (MNIST)"
	p.addComparison(r, r.compare("n"), false)
	p.add(r.tables("n", secondsQuantity, "time of a fit", figures)...)
	p.add(r.tables("n", metric(predictMetric, "s"), "time of predicting 10,000 images", figures)...)
	p.add(r.tables("n", metric(errorMetric, ""), "fraction of wrong predictions", figures)...)
}
