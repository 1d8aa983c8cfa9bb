package pipeline

import (
	"bytes"
	"context"
	"encoding/gob"
	"fmt"
	"reflect"

	"github.com/apache/beam/sdks/v2/go/pkg/beam"
	_ "github.com/apache/beam/sdks/v2/go/pkg/beam/io/filesystem/local"

	"github.com/mercer-go/mercer/beam/internal/sums"
)

func init() {
	beam.RegisterCoder(reflect.TypeFor[partialSums](), encodePart, decodePart)
	beam.RegisterCoder(reflect.TypeFor[filePiece](), encodePiece, decodePiece)
	beam.RegisterCoder(reflect.TypeFor[census](), encodeCensus, decodeCensus)
	beam.RegisterCoder(reflect.TypeFor[fitPlan](), encodePlan, decodePlan)
	beam.RegisterCoder(reflect.TypeFor[chosenModel](), encodeSolved, decodeSolved)

	// The generic functions of package register would avoid reflection, but take a minute and 2.5 GB to compile.
	for _, fn := range []reflect.Type{
		reflect.TypeFor[listFn](), reflect.TypeFor[takeFn](), reflect.TypeFor[censusFn](), reflect.TypeFor[planFn](), reflect.TypeFor[gramFn](), reflect.TypeFor[dropGroup](),
		reflect.TypeFor[solveFn](), reflect.TypeFor[measureFn](), reflect.TypeFor[judgeFn](), reflect.TypeFor[writeFn](),
	} {
		beam.RegisterDoFn(fn)
	}
	beam.RegisterFunction(dropKey)
	beam.RegisterType(reflect.TypeFor[mergeFn]())
	beam.RegisterType(reflect.TypeFor[censusMerge]())
}

// Fit adds the pipeline to s; beam.Run runs it. Fit returns an error for invalid params. Invalid
// data make the run fail.
func Fit(s beam.Scope, p Params) error {
	p, err := p.withDefaults()
	if err != nil {
		return err
	}
	s = s.Scope("mercer")
	listed := beam.ParDo(s.Scope("list"), &listFn{p}, beam.Impulse(s))
	// Redistribute the pieces, which are otherwise all on the worker that listed them.
	pieces := beam.Reshuffle(s, listed)

	learn := s.Scope("learn")
	census := beam.Combine(learn, &censusMerge{}, spread(learn, p, pieces, func(s beam.Scope, pieces beam.PCollection) beam.PCollection {
		return beam.ParDo(s, &censusFn{p}, pieces)
	}))
	plan := beam.ParDo(learn, &planFn{p}, beam.Impulse(learn), beam.SideInput{Input: census})

	gram := s.Scope("sums")
	// The sums are merged in a tree of two levels: the parts of each group first, and then the groups.
	grouped := spread(gram, p, pieces, func(s beam.Scope, pieces beam.PCollection) beam.PCollection {
		return beam.CombinePerKey(s, &mergeFn{}, beam.ParDo(s, &gramFn{Params: p}, pieces, beam.SideInput{Input: plan}))
	})
	parts := beam.CombinePerKey(gram, &mergeFn{}, beam.ParDo(gram, &dropGroup{p}, grouped, beam.SideInput{Input: plan}))

	solve := s.Scope("solve")
	chosen, total := beam.ParDo2(solve, &solveFn{p}, beam.Impulse(solve), beam.SideInput{Input: plan}, beam.SideInput{Input: parts})
	chosen = measure(s.Scope("measure"), p, pieces, plan, chosen, total)

	write := s.Scope("write")
	beam.ParDo0(write, &writeFn{p}, beam.Impulse(write), beam.SideInput{Input: plan}, beam.SideInput{Input: chosen}, beam.SideInput{Input: total})
	return nil
}

type listFn struct{ Params Params }

func (f *listFn) ProcessElement(ctx context.Context, _ []byte, emit func(filePiece)) (err error) {
	defer markUserError(&err)
	next := 0
	return pieces(ctx, f.Params, func(p filePiece) {
		p.Number = next
		next++
		emit(p)
	})
}

type censusFn struct{ Params Params }

func (f *censusFn) ProcessElement(ctx context.Context, p filePiece, emit func(census)) (err error) {
	defer markUserError(&err)
	c, err := censusOf(ctx, f.Params, p)
	if err != nil {
		return err
	}
	emit(*c)
	return nil
}

// censusMerge is the CombineFn of censuses.
type censusMerge struct{}

func (censusMerge) CreateAccumulator() census { return census{} }

func (censusMerge) AddInput(a, c census) (sum census, err error) {
	defer markUserError(&err)
	err = a.merge(&c)
	return a, err
}

func (censusMerge) MergeAccumulators(a, b census) (sum census, err error) {
	defer markUserError(&err)
	err = a.merge(&b)
	return a, err
}

type planFn struct{ Params Params }

func (f *planFn) ProcessElement(ctx context.Context, _ []byte, c census, emit func(fitPlan)) (err error) {
	defer markUserError(&err)
	plan, err := planOf(ctx, f.Params, &c)
	if err != nil {
		return err
	}
	emit(*plan)
	return nil
}

// encode uses gob, which keeps every bit of a number.
func encode[T any](v T) ([]byte, error) {
	var b bytes.Buffer
	if err := gob.NewEncoder(&b).Encode(v); err != nil {
		return nil, fmt.Errorf("pipeline: %T: %w", v, err)
	}
	return b.Bytes(), nil
}

func decode[T any](b []byte) (T, error) {
	var v T
	if err := gob.NewDecoder(bytes.NewReader(b)).Decode(&v); err != nil {
		return v, fmt.Errorf("pipeline: %T: %w", v, err)
	}
	return v, nil
}

// The functions below have names because Beam identifies coders by the names of functions.

func encodePiece(p filePiece) ([]byte, error)    { return encode(p) }
func decodePiece(b []byte) (filePiece, error)    { return decode[filePiece](b) }
func encodeCensus(c census) ([]byte, error)      { return encode(c) }
func decodeCensus(b []byte) (census, error)      { return decode[census](b) }
func encodePlan(p fitPlan) ([]byte, error)       { return encode(p) }
func decodePlan(b []byte) (fitPlan, error)       { return decode[fitPlan](b) }
func encodeSolved(s chosenModel) ([]byte, error) { return encode(s) }
func decodeSolved(b []byte) (chosenModel, error) { return decode[chosenModel](b) }

func encodePart(p partialSums) ([]byte, error) { return p.Sums.MarshalBinary() }

func decodePart(b []byte) (partialSums, error) {
	s := &sums.Sums{}
	if err := s.UnmarshalBinary(b); err != nil {
		return partialSums{}, err
	}
	return partialSums{s}, nil
}
