package kernels

import (
	"fmt"
	"math"
	"strings"

	"github.com/mercer-go/mercer/internal/suggest"
)

// These limits prevent a text from exhausting the stack or the processor.
const (
	maxLength  = 1 << 18 // bytes
	maxNesting = 64      // nested parentheses; a program's Depth is at most about twice this number
	maxKernels = 1000    // kernels, weights and constants in one text
)

// Parse reads a kernel from its text. Catalogue lists the names and their parameters.
//
//	sum        product + product + …
//	product    factor * factor * …
//	factor     number                a weight ≥ 0, or a constant kernel
//	           ( sum )
//	           exp( sum )
//	           normalize( sum )
//	           columns( indices, sum )   the kernel on these columns, counted from 0
//	           name                  if it has no required parameters
//	           name( parameter = value, … )
//	value      number, or [ number, … ] with one for each feature
//	indices    range, or [ range, … ]
//	range      integer, or integer-integer with both ends
//
// Names are case-insensitive, and spaces are ignored:
//
//	gaussian(sigma=2)
//	gaussian(sigma=[1, 2, 0.5])
//	0.5*polynomial(degree=3, c=1) + linear()
//	exp(0.1*linear) * matern52(sigma=3) + 1
//	columns(0-3, gaussian(sigma=1)) + 2*columns([4,7], linear)
//
// Parse also accepts the gamma of other libraries instead of sigma: 1/(2σ²) for gaussian and 1/σ for laplacian.
//
// The result is in canonical form (see Canonical) and passes Check(-1). An error is a *ParseError.
func Parse(text string) (Kernel, error) {
	return (&parser{text: text}).parse()
}

// ParseError is an error in a kernel's text, with its position.
type ParseError struct {
	Text   string // the kernel's text
	Column int    // position in characters, from 1
	detail string
}

func (e *ParseError) Error() string {
	return fmt.Sprintf("kernels: character %d: %s", e.Column, e.detail)
}

// parser reads tokens and builds kernels by recursive descent. At the first error it panics with a *ParseError,
// which the method run recovers.
type parser struct {
	text    string
	next    token
	end     int // offset of the byte after the token in the field next
	nesting int
	kernels int
	indices int // number of indices in the lists of columns
}

// run calls f and returns the error that fail raised, or nil.
func (p *parser) run(f func()) (err error) {
	defer func() {
		switch r := recover().(type) {
		case nil:
		case *ParseError:
			err = r
		default:
			panic(r)
		}
	}()
	if len(p.text) > maxLength {
		p.fail(0, "the text is longer than %d bytes", maxLength)
	}
	f()
	return nil
}

func (p *parser) parse() (k Kernel, err error) {
	if err := p.run(func() { k = p.wholeText() }); err != nil {
		return nil, err
	}
	return k, nil
}

func (p *parser) wholeText() Kernel {
	p.advance()
	if p.next.kind == endToken {
		p.fail(0, "a kernel is needed, such as %s; the kernels are %s", find("gaussian").Example, strings.Join(names(), ", "))
	}
	k := p.sum()
	if p.next.kind != endToken {
		p.unexpected("+, * or the end")
	}
	k = Canonical(k)
	p.check(0, k)
	if len(k.String()) > maxLength { // String has the same limit, because Parse must accept its text
		p.fail(0, "the text with all numbers in full is longer than %d bytes", maxLength)
	}
	return k
}

// fail panics with an error at the given byte offset of the text.
func (p *parser) fail(offset int, format string, args ...any) {
	panic(&ParseError{Text: p.text, Column: len([]rune(p.text[:offset])) + 1, detail: fmt.Sprintf(format, args...)})
}

// unexpected fails at the next token with an error that says what is expected instead.
func (p *parser) unexpected(expected string) {
	p.fail(p.next.offset, "%s is needed, not %s", expected, p.next)
}

// check fails at the given byte offset of the text if k is invalid.
func (p *parser) check(offset int, k Kernel) {
	if err := k.Check(-1); err != nil {
		p.fail(offset, "%s", strings.TrimPrefix(err.Error(), "kernels: "))
	}
}

// accept consumes the next token if it is the punctuation s.
func (p *parser) accept(s string) bool {
	if p.next.kind != signToken || p.next.text != s {
		return false
	}
	p.advance()
	return true
}

// expect consumes the punctuation s, or fails.
func (p *parser) expect(s string) {
	if !p.accept(s) {
		p.unexpected(s)
	}
}

func (p *parser) sum() Kernel {
	if p.nesting++; p.nesting > maxNesting {
		p.fail(p.next.offset, "more than %d parentheses are open", maxNesting)
	}
	defer func() { p.nesting-- }()
	k := Sum{p.product()}
	for p.accept("+") {
		k = append(k, p.product())
	}
	if p.next.kind == signToken && p.next.text == "-" {
		p.fail(p.next.offset, "kernels can be added, not subtracted")
	}
	return k
}

func (p *parser) product() Kernel {
	k := Product{p.factor()}
	for p.accept("*") {
		k = append(k, p.factor())
	}
	return k
}

func (p *parser) factor() Kernel {
	if p.kernels++; p.kernels > maxKernels {
		p.fail(p.next.offset, "there are more than %d kernels", maxKernels)
	}
	offset := p.next.offset
	switch {
	case p.next.kind == nameToken:
		return p.namedKernel()
	case p.accept("("):
		k := p.sum()
		p.expect(")")
		return k
	case p.next.kind == numberToken, p.next.kind == signToken && (p.next.text == "-" || p.next.text == "+"):
		v := p.number()
		if v < 0 {
			p.fail(offset, "a weight or constant must be ≥ 0, got %v", v)
		}
		return Constant{v}
	}
	p.unexpected("a kernel or a number")
	return nil
}

// namedKernel parses a kernel that begins with its name.
func (p *parser) namedKernel() Kernel {
	offset := p.next.offset
	typed := p.next.text
	d := find(strings.ToLower(typed))
	if d == nil {
		p.fail(offset, "unknown kernel %s%s; the kernels are %s", p.next, nearest(typed, append(names(), aliases()...)), strings.Join(names(), ", "))
	}
	p.advance()
	if d.wrap != nil {
		if !p.accept("(") {
			p.fail(offset, "%s needs a kernel in parentheses, as in %s", d.Name, d.Example)
		}
		var columns []int
		if d.Name == "columns" {
			columns = p.columns()
			p.expect(",")
		}
		k := d.wrap(columns, p.sum())
		p.expect(")")
		if columns != nil {
			p.check(offset, k)
		}
		return k
	}
	k := d.build(p.arguments(d, offset))
	p.check(offset, k)
	return k
}

// columns parses a list of indices.
func (p *parser) columns() (indices []int) {
	list := p.accept("[")
	for {
		first := p.column()
		last := first
		if p.accept("-") {
			offset := p.next.offset
			if last = p.column(); last < first {
				p.fail(offset, "columns: the range %d-%d is empty", first, last)
			}
		}
		if p.indices += last - first + 1; p.indices > maxColumn+1 {
			p.fail(p.next.offset, "columns: the lists have more than %d columns", maxColumn+1)
		}
		for c := first; c <= last; c++ {
			indices = append(indices, c)
		}
		if !list || p.accept("]") {
			return indices
		}
		if !p.accept(",") {
			p.unexpected(", or ]")
		}
	}
}

func (p *parser) column() int {
	offset := p.next.offset
	if p.next.kind != numberToken {
		p.fail(offset, "columns: a column is needed, an integer that counts from 0, as in %s, not %s", find("columns").Example, p.next)
	}
	v := p.number()
	if v != math.Trunc(v) || v > maxColumn {
		p.fail(offset, "columns: a column must be an integer from 0 to %d, got %v", maxColumn, v)
	}
	return int(v)
}

// arguments parses the parameters of d in parentheses. d's name is at the given byte offset.
func (p *parser) arguments(d *Description, offset int) arguments {
	byName := map[string]argument{}
	if p.accept("(") && !p.accept(")") {
		for {
			p.parameter(d, byName)
			if p.accept(")") {
				break
			}
			if !p.accept(",") {
				p.unexpected(", or )")
			}
		}
	}
	var args arguments
	for _, q := range d.Parameters {
		if q.InsteadOf != "" {
			continue
		}
		a, ok := byName[q.Name]
		if !ok {
			if q.Default == "" {
				p.fail(offset, "%s needs %s, as in %s", d.Name, q.Name, d.Example)
			}
			a = argument{values: []float64{parseNumber(q.Default)}}
		}
		args = append(args, a)
	}
	return args
}

// parameter parses name=value and adds the value to byName. A value of gamma becomes a value of sigma.
func (p *parser) parameter(d *Description, byName map[string]argument) {
	offset := p.next.offset
	if p.next.kind != nameToken {
		p.fail(offset, "%s: parameters are written with their names, as in %s", d.Name, d.Example)
	}
	q := d.parameter(strings.ToLower(p.next.text))
	if q == nil {
		p.unknownParameter(d)
	}
	p.advance()
	p.expect("=")
	a := p.value(d, q)
	target := q.Name
	if q.InsteadOf != "" {
		target = q.InsteadOf
		for i, v := range a.values {
			if v <= 0 {
				p.fail(offset, "%s: %s must be > 0, got %v", d.Name, q.Name, v)
			}
			a.values[i] = q.convert(v)
		}
	}
	if previous, ok := byName[target]; ok {
		if previous.name != q.Name {
			p.fail(offset, "%s: give %s or %s, not both", d.Name, previous.name, q.Name)
		}
		p.fail(offset, "%s: %s is given twice", d.Name, q.Name)
	}
	a.name = q.Name
	byName[target] = a
}

// unknownParameter fails with the message that the next token is not a parameter of d.
func (p *parser) unknownParameter(d *Description) {
	var parameters []string
	for _, q := range d.Parameters {
		parameters = append(parameters, q.Name)
	}
	if len(parameters) == 0 {
		p.fail(p.next.offset, "%s has no parameters", d.Name)
	}
	p.fail(p.next.offset, "%s: unknown parameter %s%s; the parameters are %s", d.Name, p.next, nearest(p.next.text, parameters), strings.Join(parameters, ", "))
}

// value parses the value of the parameter q of d.
func (p *parser) value(d *Description, q *Parameter) argument {
	offset := p.next.offset
	if p.accept("[") {
		if q.Type != OneOrEach {
			p.fail(offset, "%s: %s is one number, not a list", d.Name, q.Name)
		}
		a := argument{list: true}
		for {
			a.values = append(a.values, p.number())
			if p.accept("]") {
				return a
			}
			if !p.accept(",") {
				p.unexpected(", or ]")
			}
		}
	}
	v := p.number()
	if q.Type == Integer && (v != math.Trunc(v) || math.Abs(v) > math.MaxInt32) {
		p.fail(offset, "%s: %s must be an integer, got %v", d.Name, q.Name, v)
	}
	return argument{values: []float64{v}}
}

func (p *parser) number() float64 {
	offset, sign := p.next.offset, 1.0
	if p.accept("-") {
		sign = -1
	} else {
		p.accept("+")
	}
	switch word := strings.ToLower(p.next.text); {
	case word == "inf", word == "infinity", word == "nan":
		p.fail(offset, "a finite number is needed, not %s", p.next)
	case p.next.kind != numberToken:
		p.unexpected("a number")
	}
	v := parseNumber(p.next.text)
	switch {
	case math.IsInf(v, 0):
		p.fail(offset, "%s is outside the range of float64", p.next)
	case math.IsNaN(v):
		p.fail(offset, "%s is not a number", p.next)
	}
	p.advance()
	return sign * v
}

// nearest returns the text `, did you mean "…"?` if one of names is similar to typed, otherwise "".
func nearest(typed string, names []string) string {
	if best := suggest.Nearest(typed, names); best != "" {
		return fmt.Sprintf(", did you mean %q?", best)
	}
	return ""
}
