// Package libsvm reads the models that svm-train of LIBSVM writes.
package libsvm

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/dataset"
	"github.com/mercer-go/mercer/internal/elementary"
	"github.com/mercer-go/mercer/internal/modelfile"
	"github.com/mercer-go/mercer/internal/numeric"
	"github.com/mercer-go/mercer/internal/svm"
	"github.com/mercer-go/mercer/kernels"
	"github.com/mercer-go/mercer/learners"
)

type file struct {
	header map[string][]string // the words after each keyword
	coef   [][]float64         // coefficients of each support vector, k−1 numbers for k classes
	points backend.CSR[float64]
	k      int // number of classes; 2 for a regression or one-class model
}

// Read returns the model in r as a model of the learner svc, svr or one-class-svm. Tables for this model have the
// columns x1, x2, … up to the largest index in a support vector; a missing cell is 0. Decision values equal
// LIBSVM's up to rounding and sign: svc's value for a pair of classes is positive for the class with the larger
// label, and LIBSVM's value for the class that occurs first in the training file. If the votes are tied, svc
// compares decision values, and LIBSVM predicts the class that occurs first.
func Read(r io.Reader) (b modelfile.Bundle, err error) {
	f, err := parse(r)
	if err == nil {
		b, err = f.bundle()
	}
	if err != nil {
		return b, fmt.Errorf("libsvm: %w", err)
	}
	return b, nil
}

func parse(r io.Reader) (*file, error) {
	f := &file{header: map[string][]string{}, k: 2}
	f.points.Indptr = []int{0}
	in := bufio.NewReader(r)
	vectors := false
	for line := 1; ; line++ {
		text, err := in.ReadString('\n')
		if err != nil && err != io.EOF {
			return nil, err
		}
		words := strings.Fields(text)
		switch {
		case len(words) == 0:
		case vectors:
			if err := f.vector(words); err != nil {
				return nil, fmt.Errorf("line %d: %w", line, err)
			}
		case line == 1 && words[0] != "svm_type":
			return nil, errors.New("is not a model of LIBSVM: it does not begin with svm_type")
		case words[0] == "SV":
			vectors = true
			if k, err := f.number("nr_class"); err == nil && k == math.Trunc(k) && k >= 1 && k <= learners.MaxClasses {
				f.k = int(k)
			} else {
				return nil, fmt.Errorf("nr_class must be an integer from 1 to %d", learners.MaxClasses)
			}
			if f.machine() {
				f.k = 2
			}
		default:
			f.header[words[0]] = words[1:]
		}
		if err == io.EOF {
			break
		}
	}
	if total, err := f.number("total_sv"); err != nil || total != float64(len(f.coef)) {
		return nil, fmt.Errorf("is incomplete: it has %d support vectors, and total_sv is %s", len(f.coef), strings.Join(f.header["total_sv"], " "))
	}
	if len(f.coef) == 0 || f.points.Cols == 0 {
		return nil, errors.New("has no support vectors with features")
	}
	return f, nil
}

func (f *file) machine() bool {
	kind := f.text("svm_type")
	return kind == "one_class" || kind == "epsilon_svr" || kind == "nu_svr"
}

// vector reads the line of a support vector: coefficients, and index:value for each nonzero feature.
func (f *file) vector(words []string) error {
	if len(words) < f.k-1 {
		return fmt.Errorf("has %d coefficients, but %d are needed", len(words), f.k-1)
	}
	coef, err := parseFloats(words[:f.k-1])
	if err != nil {
		return err
	}
	last := 0
	for _, word := range words[f.k-1:] {
		index, value, _ := strings.Cut(word, ":")
		i, err := strconv.ParseInt(index, 10, 32)
		if err != nil || int(i) <= last || i > dataset.MaxFeatures {
			return fmt.Errorf("%q: the index must be an integer from %d to %d", word, last+1, dataset.MaxFeatures)
		}
		v, err := parseFloats([]string{value})
		if err != nil {
			return fmt.Errorf("%q: %w", word, err)
		}
		f.points.Indices, f.points.Data = append(f.points.Indices, int32(i-1)), append(f.points.Data, v[0])
		last = int(i)
	}
	f.coef = append(f.coef, coef)
	f.points.Rows, f.points.Cols = f.points.Rows+1, max(f.points.Cols, last)
	f.points.Indptr = append(f.points.Indptr, len(f.points.Data))
	return nil
}

func parseFloats(words []string) ([]float64, error) {
	list := make([]float64, len(words))
	for i, word := range words {
		v, err := strconv.ParseFloat(word, 64)
		if err != nil || v-v != 0 {
			return nil, fmt.Errorf("%q is not a finite number", word)
		}
		list[i] = v
	}
	return list, nil
}

// text returns the only word after a keyword, or "".
func (f *file) text(key string) string {
	if len(f.header[key]) != 1 {
		return ""
	}
	return f.header[key][0]
}

func (f *file) number(key string) (float64, error) {
	list, err := f.numbers(key, 1)
	if err != nil {
		return 0, err
	}
	return list[0], nil
}

func (f *file) numbers(key string, n int) ([]float64, error) {
	words, ok := f.header[key]
	if !ok {
		return nil, fmt.Errorf("has no %s", key)
	}
	list, err := parseFloats(words)
	if err == nil && len(list) != n {
		err = fmt.Errorf("has %d numbers, not %d", len(list), n)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", key, err)
	}
	return list, nil
}

// kernel returns the model's kernel. LIBSVM's polynomial is (γxᵀz + c)^p = γ^p (xᵀz + c/γ)^p.
func (f *file) kernel() (k kernels.Kernel, err error) {
	value := func(key string) (v float64) {
		if err == nil {
			v, err = f.number(key)
		}
		return v
	}
	switch kind := f.text("kernel_type"); kind {
	case "linear":
		k = kernels.Linear{}
	case "polynomial":
		gamma, degree := value("gamma"), value("degree")
		p := kernels.Polynomial{Degree: int(degree), C: value("coef0") / gamma}
		if err == nil && (degree != float64(p.Degree) || !(gamma > 0) || !(p.C >= 0)) {
			return nil, errors.New("the polynomial kernel needs gamma > 0, coef0 ≥ 0 and an integer degree")
		}
		k = kernels.Scaled{Weight: elementary.Pow(gamma, degree), Kernel: p}
	case "rbf":
		k = kernels.Gaussian{Sigma: math.Sqrt(0.5 / value("gamma"))}
	case "sigmoid":
		k = kernels.Sigmoid{A: value("gamma"), C: value("coef0")}
	default:
		return nil, fmt.Errorf("the kernel_type %q is not supported: use linear, polynomial, rbf or sigmoid", kind)
	}
	if err == nil {
		err = k.Check(f.points.Cols)
	}
	return k, err
}

func (f *file) bundle() (b modelfile.Bundle, err error) {
	k, err := f.kernel()
	if err != nil {
		return b, err
	}
	s := learners.State{Params: map[string]any{"kernel": k.String()}, Arrays: map[string]backend.Host[float64]{}}
	e := f.encoder()
	switch kind := f.text("svm_type"); kind {
	case "c_svc", "nu_svc":
		s.Learner, e.Outputs = "svc", []string{"label"}
		e.Labels, err = f.classes(s)
	case "epsilon_svr", "nu_svr":
		s.Learner, e.Outputs = "svr", []string{"label"}
		err = f.expansion(s)
	case "one_class":
		s.Learner = "one-class-svm"
		err = f.expansion(s)
	default:
		err = fmt.Errorf("the svm_type %q is not supported: use c_svc, nu_svc, epsilon_svr, nu_svr or one_class", kind)
	}
	if err != nil {
		return b, err
	}
	b.Encoder = e
	b.Model, err = learners.Restore(s)
	return b, err
}

// sparse reports whether the model stores the support vectors as a sparse matrix, by the rule of package dataset.
func (f *file) sparse() bool {
	return f.points.Cols >= 64 && 3*float64(f.points.NNZ()) <= float64(f.points.Rows)*float64(f.points.Cols)
}

// encoder returns the dataset.Encoder of tables with the columns x1, x2, ….
func (f *file) encoder() *dataset.Encoder {
	d, e := f.points.Cols, &dataset.Encoder{}
	if f.sparse() {
		e.Inputs = []dataset.Input{{Name: fmt.Sprintf("x1-x%d", d), Sparse: &dataset.Sparse{First: 1, Columns: d}}}
		return e
	}
	for j := range d {
		e.Inputs = append(e.Inputs, dataset.Input{Name: fmt.Sprintf("x%d", j+1), Number: &dataset.Number{Scale: 1}})
	}
	return e
}

// store writes the support vectors to s, in the given order.
func (f *file) store(s learners.State, order []int) {
	p := numeric.SparsePoints(f.points).Take(order).Sparse
	if !f.sparse() {
		h := backend.NewHost[float64](p.Rows, p.Cols)
		p.DenseTo(h)
		s.Arrays["points"] = h
		return
	}
	starts, columns := make([]float64, len(p.Indptr)), make([]float64, len(p.Indices))
	for i, v := range p.Indptr {
		starts[i] = float64(v)
	}
	for i, v := range p.Indices {
		columns[i] = float64(v)
	}
	s.Params["points.features"], s.Arrays["points.starts"] = float64(p.Cols), numeric.Row(starts)
	s.Arrays["points.columns"], s.Arrays["points.values"] = numeric.Row(columns), numeric.Row(p.Data)
}

// expansion writes a regression or one-class model to s.
func (f *file) expansion(s learners.State) error {
	rho, err := f.numbers("rho", 1)
	if err != nil {
		return err
	}
	beta := backend.NewHost[float64](len(f.coef), 1)
	order := make([]int, len(f.coef))
	for i, coef := range f.coef {
		beta.Row(i)[0], order[i] = coef[0], i
	}
	f.store(s, order)
	s.Arrays["beta"], s.Arrays["intercept"] = beta, numeric.Row([]float64{-rho[0]})
	return nil
}

// classes writes the decision function of each pair of classes to s, and returns the names of the classes. svc
// sorts the classes by label, LIBSVM by their first occurrence in the training file. A decision value of a pair is
// positive for the second class of svc, and for the first class of LIBSVM.
func (f *file) classes(s learners.State) ([]string, error) {
	k, pairs, times := f.k, f.k*(f.k-1)/2, make(map[float64]int, f.k)
	labels, err := f.numbers("label", k)
	if err != nil {
		return nil, err
	}
	if i := slices.IndexFunc(labels, func(v float64) bool { times[v]++; return times[v] > 1 }); i >= 0 {
		return nil, fmt.Errorf("label: label %s occurs twice", f.header["label"][i])
	}
	counts, err := f.numbers("nr_sv", k)
	if err != nil {
		return nil, err
	}
	rho, err := f.numbers("rho", pairs)
	if err != nil {
		return nil, err
	}
	first := make([]int, k+1) // index of the first support vector of each class of LIBSVM
	for c, n := range counts {
		if n < 0 || n != math.Trunc(n) || n > float64(len(f.coef)-first[c]) {
			first[k] = -1
			break
		}
		first[c+1] = first[c] + int(n)
	}
	if first[k] != len(f.coef) {
		return nil, errors.New("nr_sv does not add up to total_sv")
	}
	from := make([]int, k) // from[c] is the index in LIBSVM's list of the class that has index c in svc
	for c := range from {
		from[c] = c
	}
	slices.SortFunc(from, func(a, b int) int { return cmp.Compare(labels[a], labels[b]) })
	// pair returns, for classes a < b of svc, the index of their pair in LIBSVM and the factor for its decision value.
	pair := func(a, b int) (int, float64) {
		if from[a] < from[b] {
			return svm.At(from[a], from[b], k), -1
		}
		return svm.At(from[b], from[a], k), 1
	}
	var names []string
	var order []int
	coef, classCounts := backend.NewHost[float64](len(f.coef), k-1), make([]float64, k)
	for a, c := range from {
		names = append(names, strconv.FormatFloat(labels[c], 'g', -1, 64))
		classCounts[a] = counts[c]
		for i := first[c]; i < first[c+1]; i++ {
			to := coef.Row(len(order))
			for b, otherClass := range from {
				if b == a {
					continue
				}
				_, sign := pair(min(a, b), max(a, b))
				to[skip(b, a)] = sign * f.coef[i][skip(otherClass, c)]
			}
			order = append(order, i)
		}
	}
	f.store(s, order)
	intercept := make([]float64, pairs)
	for a := range k {
		for b := a + 1; b < k; b++ {
			index, sign := pair(a, b)
			intercept[svm.At(a, b, k)] = -sign * rho[index]
		}
	}
	if err := f.sigmoids(s, pair); err != nil {
		return nil, err
	}
	text, err := json.Marshal(names)
	if err != nil {
		return nil, err
	}
	s.Params["classes"] = string(text)
	index := make([]float64, k)
	for c := range index {
		index[c] = float64(c)
	}
	s.Arrays["coef"], s.Arrays["counts"], s.Arrays["intercept"], s.Arrays["labels"] = coef, numeric.Row(classCounts), numeric.Row(intercept), numeric.Row(index)
	return names, nil
}

// skip returns the index of class b in the list without class a.
func skip(b, a int) int {
	if b > a {
		return b - 1
	}
	return b
}

// sigmoids writes the coefficients A and B for each pair of classes to s if the file has them. LIBSVM's
// probability of the first class of a pair is 1/(1 + exp(Af + B)) for the decision value f.
func (f *file) sigmoids(s learners.State, pair func(a, b int) (int, float64)) error {
	_, fitted := f.header["probA"]
	if s.Params["probability"] = fitted; !fitted {
		return nil
	}
	pairs := f.k * (f.k - 1) / 2
	a, err := f.numbers("probA", pairs)
	if err != nil {
		return err
	}
	b, err := f.numbers("probB", pairs)
	if err != nil {
		return err
	}
	h := backend.NewHost[float64](2, pairs)
	for p := range f.k {
		for q := p + 1; q < f.k; q++ {
			index, sign := pair(p, q)
			h.Row(0)[svm.At(p, q, f.k)], h.Row(1)[svm.At(p, q, f.k)] = a[index], sign*b[index]
		}
	}
	s.Arrays["sigmoid"] = h
	return nil
}
