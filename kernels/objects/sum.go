package objects

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/mercer-go/mercer/host"
	"github.com/mercer-go/mercer/kernels"
)

// Term is one kernel of a Sum with its weight.
type Term struct {
	Weight float64 // finite, ≥ 0
	Kernel Kernel
}

// Sum is Σ weight·k(a, b) over kernels on the same kind of objects. Its text joins the texts of the terms by +,
// with a weight before a *, as in spectrum(length=2) + 0.5*spectrum(length=3).
//
// At most two matrices are in memory at a time.
type Sum []Term

func (k Sum) String() string {
	var texts []string
	for _, t := range k {
		text := t.Kernel.String()
		if t.Weight != 1 {
			text = strconv.FormatFloat(t.Weight, 'g', -1, 64) + "*" + text
		}
		texts = append(texts, text)
	}
	return strings.Join(texts, " + ")
}

// Input returns the kind of objects of all terms.
func (k Sum) Input() Input {
	if len(k) == 0 {
		return Text
	}
	return k[0].Kernel.Input()
}

// Check requires at least one term, finite weights ≥ 0, and valid kernels over the same kind of objects.
func (k Sum) Check() error {
	if len(k) == 0 {
		return errors.New("objects: sum: has no kernels")
	}
	for _, t := range k {
		if !(t.Weight >= 0) || math.IsInf(t.Weight, 1) {
			return fmt.Errorf("objects: sum: the weight of %v must be a finite number ≥ 0, got %v", t.Kernel, t.Weight)
		}
		if err := t.Kernel.Check(); err != nil {
			return err
		}
		if t.Kernel.Input() != k.Input() {
			return fmt.Errorf("objects: sum: %v is over %ss, but %v is over %ss; all terms must be over objects of the same kind", k[0].Kernel, k.Input(), t.Kernel, t.Kernel.Input())
		}
	}
	return nil
}

// Gram implements Kernel.
func (k Sum) Gram(ctx context.Context, objects []string, o Options) (host.Matrix[float64], error) {
	return k.add(o, func(t Kernel, o Options) (host.Matrix[float64], error) { return t.Gram(ctx, objects, o) })
}

// Cross implements Kernel.
func (k Sum) Cross(ctx context.Context, a, b []string, o Options) (host.Matrix[float64], error) {
	return k.add(o, func(t Kernel, o Options) (host.Matrix[float64], error) { return t.Cross(ctx, a, b, o) })
}

// Diag implements Kernel.
func (k Sum) Diag(ctx context.Context, objects []string, o Options) ([]float64, error) {
	h, err := k.add(o, func(t Kernel, o Options) (host.Matrix[float64], error) {
		d, err := t.Diag(ctx, objects, o)
		return host.Matrix[float64]{Rows: 1, Cols: len(d), Stride: len(d), Data: d}, err
	})
	return h.Data, err
}

// add returns the weighted sum of the matrices that the function compute returns for the terms.
func (k Sum) add(o Options, compute func(Kernel, Options) (host.Matrix[float64], error)) (sum host.Matrix[float64], err error) {
	if err := k.Check(); err != nil {
		return sum, err
	}
	for i, t := range k {
		options := o
		if o.Progress != nil {
			options.Progress = func(f float64) { o.Progress((float64(i) + f) / float64(len(k))) }
		}
		h, err := compute(t.Kernel, options)
		if err != nil {
			return host.Matrix[float64]{}, err
		}
		if i == 0 {
			sum = host.Matrix[float64]{Rows: h.Rows, Cols: h.Cols, Stride: h.Cols, Data: make([]float64, len(h.Data))}
		}
		for e, v := range h.Data {
			sum.Data[e] += t.Weight * v
		}
	}
	return sum, nil
}

// terms splits a text at each + outside parentheses, except in exponents such as 1e+3.
func terms(text string) []string {
	var list []string
	depth, from := 0, 0
	for i, r := range text {
		switch {
		case r == '(', r == '[':
			depth++
		case r == ')', r == ']':
			depth--
		case r == '+' && depth == 0 && !exponent(text[:i]):
			list = append(list, text[from:i])
			from = i + 1
		}
	}
	return append(list, text[from:])
}

// exponent reports whether text ends with a number and the letter e.
func exponent(text string) bool {
	n := len(text)
	return n > 1 && (text[n-1] == 'e' || text[n-1] == 'E') && (text[n-2] == '.' || text[n-2] >= '0' && text[n-2] <= '9')
}

// weight parses an optional number and * at the beginning of a term. It returns the weight and the
// byte offset of the kernel's text in term.
func weight(term string) (w float64, offset int) {
	number, _, ok := strings.Cut(term, "*")
	if !ok {
		return 1, 0
	}
	w, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
	if err != nil {
		return 1, 0
	}
	return w, len(number) + 1
}

// parseSum parses the terms of a text. A single term of weight 1 is returned without a Sum.
func parseSum(text string) (Kernel, error) {
	var sum Sum
	offset := 0 // byte offset of the term in text
	for _, term := range terms(text) {
		w, start := weight(term)
		k, err := parseOne(term[start:])
		if err != nil {
			var parseErr *kernels.ParseError
			if errors.As(err, &parseErr) {
				shifted := *parseErr
				shifted.Text, shifted.Column = text, parseErr.Column+utf8.RuneCountInString(text[:offset+start])
				return nil, &shifted
			}
			return nil, err
		}
		sum = append(sum, Term{w, k})
		offset += len(term) + 1
	}
	if len(sum) == 1 && sum[0].Weight == 1 {
		return sum[0].Kernel, nil
	}
	if err := sum.Check(); err != nil {
		return nil, err
	}
	return sum, nil
}
