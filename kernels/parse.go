package kernels

import (
	"fmt"
	"math"
	"strings"

	"github.com/mercer-go/mercer/internal/suggest"
)

// These limits prevent a text from exhausting the stack or the processor. A list of 10,000 length
// scales is within the limits.
const (
	maxLength  = 1 << 18 // bytes
	maxNesting = 64      // nested parentheses; a program's Depth is at most about twice this number
	maxKernels = 1000    // kernels, weights and constants in one text
)

// Parse reads a kernel from its text. Catalogue lists the names and their
// parameters.
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
// Parse also accepts the gamma of other libraries instead of sigma: 1/(2σ²) for gaussian and 1/σ
// for laplacian.
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

// parser reads tokens and builds kernels by recursive descent. At the first error it panics with a
// *ParseError, which the method run recovers. The parsing methods therefore return no errors.
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
	if err := p.run(func() { k = p.whole() }); err != nil {
		return nil, err
	}
	return k, nil
}

func (p *parser) whole() Kernel {
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
func (p *parser) fail(at int, format string, args ...any) {
	panic(&ParseError{Text: p.text, Column: len([]rune(p.text[:at])) + 1, detail: fmt.Sprintf(format, args...)})
}

// unexpected fails at the next token with an error that says what is needed instead.
func (p *parser) unexpected(needed string) {
	p.fail(p.next.at, "%s is needed, not %s", needed, p.next)
}

// check fails at the given byte offset of the text if k is invalid.
func (p *parser) check(at int, k Kernel) {
	if err := k.Check(-1); err != nil {
		p.fail(at, "%s", strings.TrimPrefix(err.Error(), "kernels: "))
	}
}

// take consumes the next token if it is the punctuation s.
func (p *parser) take(s string) bool {
	if p.next.kind != signToken || p.next.text != s {
		return false
	}
	p.advance()
	return true
}

// expect consumes the punctuation s, or fails.
func (p *parser) expect(s string) {
	if !p.take(s) {
		p.unexpected(s)
	}
}

func (p *parser) sum() Kernel {
	if p.nesting++; p.nesting > maxNesting {
		p.fail(p.next.at, "more than %d parentheses are open", maxNesting)
	}
	defer func() { p.nesting-- }()
	k := Sum{p.product()}
	for p.take("+") {
		k = append(k, p.product())
	}
	if p.next.kind == signToken && p.next.text == "-" {
		p.fail(p.next.at, "kernels can be added, not subtracted")
	}
	return k
}

func (p *parser) product() Kernel {
	k := Product{p.factor()}
	for p.take("*") {
		k = append(k, p.factor())
	}
	return k
}

func (p *parser) factor() Kernel {
	if p.kernels++; p.kernels > maxKernels {
		p.fail(p.next.at, "there are more than %d kernels", maxKernels)
	}
	at := p.next.at
	switch {
	case p.next.kind == nameToken:
		return p.named()
	case p.take("("):
		k := p.sum()
		p.expect(")")
		return k
	case p.next.kind == numberToken, p.next.kind == signToken && (p.next.text == "-" || p.next.text == "+"):
		v := p.number()
		if v < 0 {
			p.fail(at, "a weight or constant must be ≥ 0, got %v", v)
		}
		return Constant{v}
	}
	p.unexpected("a kernel or a number")
	return nil
}

// named parses a kernel that begins with its name.
func (p *parser) named() Kernel {
	at := p.next.at
	typed := p.next.text
	d := find(strings.ToLower(typed))
	if d == nil {
		p.fail(at, "unknown kernel %s%s; the kernels are %s", p.next, nearest(typed, append(names(), aliases()...)), strings.Join(names(), ", "))
	}
	p.advance()
	if d.wrap != nil {
		if !p.take("(") {
			p.fail(at, "%s needs a kernel in parentheses, as in %s", d.Name, d.Example)
		}
		var columns []int
		if d.Name == "columns" {
			columns = p.columns()
			p.expect(",")
		}
		k := d.wrap(columns, p.sum())
		p.expect(")")
		if columns != nil {
			p.check(at, k)
		}
		return k
	}
	k := d.build(p.arguments(d, at))
	p.check(at, k)
	return k
}

// columns parses a list of indices.
func (p *parser) columns() (all []int) {
	list := p.take("[")
	for {
		first := p.column()
		last := first
		if p.take("-") {
			at := p.next.at
			if last = p.column(); last < first {
				p.fail(at, "columns: the range %d-%d is empty", first, last)
			}
		}
		if p.indices += last - first + 1; p.indices > maxColumn+1 {
			p.fail(p.next.at, "columns: the lists have more than %d columns", maxColumn+1)
		}
		for c := first; c <= last; c++ {
			all = append(all, c)
		}
		if !list || p.take("]") {
			return all
		}
		if !p.take(",") {
			p.unexpected(", or ]")
		}
	}
}

func (p *parser) column() int {
	at := p.next.at
	if p.next.kind != numberToken {
		p.fail(at, "columns: a column is needed, an integer that counts from 0, as in %s, not %s", find("columns").Example, p.next)
	}
	v := p.number()
	if v != math.Trunc(v) || v > maxColumn {
		p.fail(at, "columns: a column must be an integer from 0 to %d, got %v", maxColumn, v)
	}
	return int(v)
}

// arguments parses the parameters of d in parentheses. d's name is at the given byte offset.
func (p *parser) arguments(d *Description, at int) arguments {
	given := map[string]argument{}
	if p.take("(") && !p.take(")") {
		for {
			p.parameter(d, given)
			if p.take(")") {
				break
			}
			if !p.take(",") {
				p.unexpected(", or )")
			}
		}
	}
	var all arguments
	for _, q := range d.Parameters {
		if q.InsteadOf != "" {
			continue
		}
		a, ok := given[q.Name]
		if !ok {
			if q.Default == "" {
				p.fail(at, "%s needs %s, as in %s", d.Name, q.Name, d.Example)
			}
			a = argument{values: []float64{parseNumber(q.Default)}}
		}
		all = append(all, a)
	}
	return all
}

// parameter parses name=value and adds the value to given. A value of gamma becomes a value of
// sigma.
func (p *parser) parameter(d *Description, given map[string]argument) {
	at := p.next.at
	if p.next.kind != nameToken {
		p.fail(at, "%s: parameters are written with their names, as in %s", d.Name, d.Example)
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
				p.fail(at, "%s: %s must be > 0, got %v", d.Name, q.Name, v)
			}
			a.values[i] = q.convert(v)
		}
	}
	if other, ok := given[target]; ok {
		if other.name != q.Name {
			p.fail(at, "%s: give %s or %s, not both", d.Name, other.name, q.Name)
		}
		p.fail(at, "%s: %s is given twice", d.Name, q.Name)
	}
	a.name = q.Name
	given[target] = a
}

// unknownParameter fails with the message that the next token is not a parameter of d.
func (p *parser) unknownParameter(d *Description) {
	var known []string
	for _, q := range d.Parameters {
		known = append(known, q.Name)
	}
	if len(known) == 0 {
		p.fail(p.next.at, "%s has no parameters", d.Name)
	}
	p.fail(p.next.at, "%s: unknown parameter %s%s; the parameters are %s", d.Name, p.next, nearest(p.next.text, known), strings.Join(known, ", "))
}

// value parses the value of the parameter q of d.
func (p *parser) value(d *Description, q *Parameter) argument {
	at := p.next.at
	if p.take("[") {
		if q.Type != OneOrEach {
			p.fail(at, "%s: %s is one number, not a list", d.Name, q.Name)
		}
		a := argument{list: true}
		for {
			a.values = append(a.values, p.number())
			if p.take("]") {
				return a
			}
			if !p.take(",") {
				p.unexpected(", or ]")
			}
		}
	}
	v := p.number()
	if q.Type == Integer && (v != math.Trunc(v) || math.Abs(v) > math.MaxInt32) {
		p.fail(at, "%s: %s must be an integer, got %v", d.Name, q.Name, v)
	}
	return argument{values: []float64{v}}
}

func (p *parser) number() float64 {
	at, sign := p.next.at, 1.0
	if p.take("-") {
		sign = -1
	} else {
		p.take("+")
	}
	switch word := strings.ToLower(p.next.text); {
	case word == "inf", word == "infinity", word == "nan":
		p.fail(at, "a finite number is needed, not %s", p.next)
	case p.next.kind != numberToken:
		p.unexpected("a number")
	}
	v := parseNumber(p.next.text)
	switch {
	case math.IsInf(v, 0):
		p.fail(at, "%s is outside the range of float64", p.next)
	case math.IsNaN(v):
		p.fail(at, "%s is not a number", p.next)
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
