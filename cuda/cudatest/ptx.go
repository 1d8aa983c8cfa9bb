package cudatest

import (
	"fmt"
	"math"
	"math/bits"
	"strconv"
	"strings"
	"unsafe"
)

type space int

const (
	global space = iota
	shared
	local
	parameters
)

func (s space) String() string { return [...]string{"global", "shared", "local", "parameter"}[s] }

// A function is a device function that can be launched, or a function that device functions call.
type function struct {
	entry     bool
	registers []uint64 // initial values of the registers, including the registers of constants
	params    int      // bytes of the parameters
	frame     int      // number of bytes of the parameters and of the arguments of calls
	arguments []int    // offsets of the parameters
	result    int      // offset of the result
	local     int      // number of bytes of local memory
	sharedEnd int
	code      []instruction

	symbols map[string]uint64 // offsets of parameters and addresses of variables
	scopes  []map[string]int  // numbers of the registers by name, innermost scope last
	labels  map[string]int
	m       *Interpreter
	line    int
	free    []*thread // frames of finished calls, for reuse
}

const (
	ordinary = iota
	branch
	barrier
	leave
	call
)

type instruction struct {
	kind            int
	execute         func(t *thread)
	guarded, unless bool
	guard           int
	target          int
	label           string
	callee          string
	arguments       []int
	result          int
	line            int
}

// parse reads the functions and variables of a module.
func (m *Interpreter) parse(text string) (err error) {
	line := 0
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("line %d of the PTX: %v", line, r)
		}
	}()
	lines := strings.Split(text, "\n")
	for i := range lines {
		lines[i], _, _ = strings.Cut(lines[i], "//")
	}
	for i := 0; i < len(lines); i++ {
		line = i + 1
		s := strings.TrimSpace(lines[i])
		switch {
		case strings.HasPrefix(s, ".shared"):
			name, bytes, align := variable(s)
			m.sharedEnd = roundUp(m.sharedEnd, align)
			m.shared[name] = m.sharedEnd
			m.sharedEnd += bytes
		case strings.HasPrefix(s, ".global"):
			name, bytes, _ := variable(s)
			table := make([]uint64, (bytes+7)/8)
			_, values, _ := strings.Cut(s, "{")
			memory := unsafe.Slice((*byte)(unsafe.Pointer(&table[0])), bytes)
			for j, v := range strings.Split(strings.TrimRight(values, "}; "), ",") {
				memory[j] = byte(number(strings.TrimSpace(v)))
			}
			m.tables = append(m.tables, table) // keeps the table alive, because its address is in use
			m.globals[name] = uint64(uintptr(unsafe.Pointer(&table[0])))
			m.Allocate(m.globals[name], uint64(bytes))
		case strings.HasPrefix(s, ".visible .entry"), strings.HasPrefix(s, ".func"):
			first := i
			for strings.TrimSpace(lines[i]) != "{" && strings.TrimSpace(lines[i]) != ";" {
				i++
			}
			if strings.TrimSpace(lines[i]) == ";" {
				continue // a declaration without a body
			}
			last := i
			for lines[last] != "}" { // the end of the function; braces of inner scopes are indented
				last++
			}
			f := &function{m: m, entry: strings.HasPrefix(s, ".visible"), symbols: map[string]uint64{}, labels: map[string]int{}, scopes: []map[string]int{{}}, sharedEnd: m.sharedEnd, result: -1}
			m.functions[f.header(strings.Join(lines[first:i], " "))] = f
			f.body(lines, i+1, last, &line)
			i = last
		}
	}
	return nil
}

func roundUp(n, multiple int) int { return (n + multiple - 1) / multiple * multiple }

// variable parses a variable of the form ".space .align 8 .b8 name[count]", or without the brackets.
func variable(s string) (name string, bytes, align int) {
	words := strings.Fields(strings.TrimRight(s, ";"))
	name, suffix, array := strings.Cut(words[4], "[")
	bytes = widthOf(words[3][1:])
	if size, _, _ := strings.Cut(suffix, "]"); array {
		bytes *= int(number(size))
	}
	return name, bytes, int(number(words[2]))
}

// widthOf returns the number of bytes of a type such as f32.
func widthOf(kind string) int {
	if kind == "pred" {
		return 8
	}
	return int(number(strings.TrimLeft(kind, "bsuf"))) / 8
}

// header parses the function's name and its parameters.
func (f *function) header(s string) (name string) {
	list := s
	if result, signature, _ := strings.Cut(s, ") "); !f.entry && strings.Contains(result, "func_retval0") {
		list = signature
	}
	name, list, _ = strings.Cut(list, "(")
	words := strings.Fields(name)
	name = words[len(words)-1]
	list, _, _ = strings.Cut(list, ")")
	for _, p := range strings.Split(list, ",") {
		words := strings.Fields(p)
		if len(words) == 0 {
			continue
		}
		bytes, align, symbol := 0, 0, words[len(words)-1]
		if words[1] == ".align" {
			symbol, bytes, align = variable(p)
		} else {
			bytes = widthOf(words[1][1:])
			align = bytes
		}
		f.params = roundUp(f.params, align)
		f.symbols[symbol] = uint64(f.params)
		f.arguments = append(f.arguments, f.params)
		f.params += bytes
	}
	f.frame = roundUp(f.params, 8)
	if !f.entry {
		f.frame += 8 // arguments occupy multiples of 8 bytes
		f.result = f.slot("func_retval0")
	}
	return name
}

// slot returns the offset in the frame of the parameter `name` of a call.
func (f *function) slot(name string) int {
	if _, ok := f.symbols[name]; !ok {
		f.symbols[name] = uint64(f.frame)
		f.frame += 8
	}
	return int(f.symbols[name])
}

func (f *function) body(lines []string, from, to int, line *int) {
	var statement strings.Builder
	for i := from; i < to; i++ {
		*line, f.line = i+1, i+1
		for _, c := range lines[i] {
			text := strings.TrimSpace(statement.String())
			switch {
			case c == '{' && text == "":
				f.scopes = append(f.scopes, map[string]int{})
			case c == '}' && text == "":
				f.scopes = f.scopes[:len(f.scopes)-1]
			case c == ':' && strings.HasPrefix(text, "$"):
				f.labels[text] = len(f.code)
				statement.Reset()
			case c == ';':
				f.statement(text)
				statement.Reset()
			default:
				statement.WriteRune(c)
			}
		}
		statement.WriteByte(' ')
	}
	for i := range f.code {
		if in := &f.code[i]; in.kind == branch {
			target, ok := f.labels[in.label]
			if !ok {
				panic("there is no label " + in.label)
			}
			in.target = target
		}
	}
	f.code = append(f.code, instruction{kind: leave, line: f.line})
}

// register returns the number of the register for an operand, which is a name or a constant.
func (f *function) register(name string) int {
	if !strings.HasPrefix(name, "%") {
		return f.constant(f.value(name))
	}
	for i := len(f.scopes) - 1; i >= 0; i-- {
		if r, ok := f.scopes[i][name]; ok {
			return r
		}
	}
	return f.declare(0, name)
}

func (f *function) declare(scope int, name string) int {
	r := len(f.registers)
	f.registers = append(f.registers, math.MaxUint64)
	f.scopes[scope][name] = r
	return r
}

func (f *function) constant(v uint64) int {
	name := fmt.Sprint("=", v)
	if r, ok := f.scopes[0][name]; ok {
		return r
	}
	r := f.declare(0, name)
	f.registers[r] = v
	return r
}

// value returns the value of a constant or the address of a variable.
func (f *function) value(name string) uint64 {
	if v, ok := f.symbols[name]; ok {
		return v
	}
	if v, ok := f.m.shared[name]; ok {
		return uint64(v)
	}
	if v, ok := f.m.globals[name]; ok {
		return v
	}
	return uint64(number(name))
}

func number(s string) int64 {
	if strings.HasPrefix(s, "0f") || strings.HasPrefix(s, "0d") {
		v, err := strconv.ParseUint(s[2:], 16, 64)
		if err != nil {
			panic(err)
		}
		return int64(v)
	}
	if v, err := strconv.ParseUint(s, 0, 64); err == nil {
		return int64(v)
	}
	v, err := strconv.ParseInt(s, 0, 64)
	if err != nil {
		panic(err)
	}
	return v
}

// operands splits a list of operands such as "%r1, [%rd2+8], {%r3, %r4}".
func operands(s string) (list []string) {
	depth, from := 0, 0
	for i, c := range s {
		switch c {
		case '{', '[', '(':
			depth++
		case '}', ']', ')':
			depth--
		case ',':
			if depth == 0 {
				list = append(list, strings.TrimSpace(s[from:i]))
				from = i + 1
			}
		}
	}
	if last := strings.TrimSpace(s[from:]); last != "" {
		list = append(list, last)
	}
	return list
}

func innerOperands(s string) []string { return operands(strings.Trim(s, "{}()[] ")) }

// statement parses a declaration or an instruction.
func (f *function) statement(s string) {
	if strings.HasPrefix(s, ".") {
		f.declaration(s)
		return
	}
	in := instruction{line: f.line, result: -1}
	if strings.HasPrefix(s, "@") {
		guard, unguarded, _ := strings.Cut(s, " ")
		if strings.ContainsRune(guard, '\t') {
			guard, unguarded, _ = strings.Cut(s, "\t")
		}
		in.guarded, in.unless = true, strings.HasPrefix(guard, "@!")
		in.guard = f.register(strings.TrimLeft(guard, "@!"))
		s = strings.TrimSpace(unguarded)
	}
	end := strings.IndexAny(s, " \t")
	op, arguments := s, ""
	if end >= 0 {
		op, arguments = s[:end], strings.TrimSpace(s[end:])
	}
	opcode, x := strings.Split(op, "."), operands(arguments)
	switch opcode[0] {
	case "bra":
		in.kind, in.label = branch, x[0]
	case "bar":
		in.kind = barrier
		if in.guarded {
			panic("a barrier with a guard")
		}
	case "ret":
		in.kind = leave
	case "call":
		in.kind = call
		if strings.HasPrefix(x[0], "(") {
			in.result = f.slot(innerOperands(x[0])[0])
			x = x[1:]
		}
		in.callee = x[0]
		if len(x) > 1 {
			for _, a := range innerOperands(x[1]) {
				in.arguments = append(in.arguments, f.slot(a))
			}
		}
	default:
		in.execute = f.operation(opcode, x)
	}
	f.code = append(f.code, in)
}

func (f *function) declaration(s string) {
	words := strings.Fields(s)
	switch words[0] {
	case ".reg":
		for _, name := range strings.Split(strings.Join(words[2:], " "), ",") {
			if name = strings.TrimSpace(name); !strings.Contains(name, "<") {
				f.declare(len(f.scopes)-1, name)
			}
		}
	case ".param":
		f.slot(words[len(words)-1])
	case ".local":
		name, bytes, align := variable(s)
		f.local = roundUp(f.local, align)
		f.symbols[name] = uint64(f.local)
		f.local += bytes
	case ".shared":
		name, bytes, align := variable(s)
		f.sharedEnd = roundUp(f.sharedEnd, align)
		f.symbols[name] = uint64(f.sharedEnd)
		f.sharedEnd = roundUp(f.sharedEnd+bytes, 2)
	case ".pragma":
	default:
		panic("unknown declaration " + s)
	}
}

// operation returns the function that executes an instruction.
func (f *function) operation(opcode, x []string) func(t *thread) {
	kind := opcode[len(opcode)-1]
	switch opcode[0] {
	case "ld", "st":
		return f.transfer(opcode, x)
	case "mov":
		return f.move(x)
	case "cvta":
		return f.move(x) // an address is converted between state spaces without a change
	case "cvt":
		return f.convert(opcode, x)
	case "atom":
		return f.atomicMax(opcode, x)
	}
	n := 8
	if kind != "pred" {
		n = 8 * widthOf(kind)
	}
	d := f.register(x[0])
	r := make([]int, 3)
	for i := range x[1:] {
		r[i] = f.register(x[1+i])
	}
	a, b, c := r[0], r[1], r[2]
	if opcode[0] == "selp" {
		return func(t *thread) {
			v := t.r[b]
			if t.r[c] != 0 {
				v = t.r[a]
			}
			t.r[d] = lowBits(v, n)
		}
	}
	if kind[0] == 'f' {
		if opcode[0] == "setp" {
			return comparison(opcode[1], n, d, a, b)
		}
		g := floating(opcode)
		if n == 32 {
			return func(t *thread) { t.r[d] = fromFloat32(g(toFloat32(t.r[a]), toFloat32(t.r[b]), toFloat32(t.r[c]))) }
		}
		return func(t *thread) { t.r[d] = fromFloat64(g(toFloat64(t.r[a]), toFloat64(t.r[b]), toFloat64(t.r[c]))) }
	}
	if opcode[0] == "setp" {
		return integerComparison(opcode[1], kind[0] == 's', n, d, a, b)
	}
	if opcode[len(opcode)-2] == "cc" || opcode[0] == "addc" || opcode[0] == "subc" || opcode[0] == "madc" {
		return carrying(opcode, d, a, b, c)
	}
	g := integral(opcode, kind[0] == 's', n)
	out := n
	if len(opcode) > 2 && opcode[1] == "wide" {
		out = 2 * n
	}
	return func(t *thread) { t.r[d] = lowBits(g(t.r[a], t.r[b], t.r[c]), out) }
}

// floating returns the function that computes an instruction on floating-point numbers in float64. If a sum, a product
// or a quotient of float32 numbers is then rounded to float32, it is correctly rounded (Figueroa 1995).
func floating(opcode []string) func(a, b, c float64) float64 {
	name := opcode[0]
	flush := func(v float64) float64 {
		if math.Abs(v) < 0x1p-126 {
			return math.Copysign(0, v)
		}
		return v
	}
	isFloat32 := opcode[len(opcode)-1] == "f32"
	switch {
	case name == "add":
		return func(a, b, _ float64) float64 { return a + b }
	case name == "sub":
		return func(a, b, _ float64) float64 { return a - b }
	case name == "mul":
		return func(a, b, _ float64) float64 { return a * b }
	case name == "div":
		return func(a, b, _ float64) float64 { return a / b }
	case name == "neg":
		return func(a, _, _ float64) float64 { return -a }
	case name == "abs":
		return func(a, _, _ float64) float64 { return math.Abs(a) }
	case name == "fma" && opcode[1] == "rm" && isFloat32:
		return func(a, b, c float64) float64 {
			v := math.FMA(a, b, c)
			if r := float32(v); float64(r) > v {
				return float64(math.Nextafter32(r, float32(math.Inf(-1))))
			}
			return v
		}
	case name == "fma" && opcode[1] == "rn":
		return func(a, b, c float64) float64 { return math.FMA(a, b, c) } // called directly, because a function value of math.FMA is not compiled to one instruction
	case name == "sqrt" && opcode[1] == "rn":
		return func(a, _, _ float64) float64 { return math.Sqrt(a) }
	case name == "sqrt": // sqrt.approx.ftz.f32
		return func(a, _, _ float64) float64 { return flush(inexact(math.Sqrt(flush(a)), 1)) }
	case name == "rcp" && opcode[1] == "rn":
		return func(a, _, _ float64) float64 { return 1 / a }
	case name == "rcp": // rcp.approx.ftz.f64, which computes 20 bits of the result
		return func(a, _, _ float64) float64 { return math.Float64frombits(math.Float64bits(1/a) &^ (1<<32 - 1)) }
	case name == "ex2": // ex2.approx.ftz.f32
		return func(a, _, _ float64) float64 {
			if a = flush(a); a == math.Trunc(a) { // powers of 2 must be exact, because the device function of tanh in float64 multiplies by them
				return flush(math.Exp2(a))
			}
			return flush(inexact(math.Exp2(a), 2))
		}
	case name == "min" && opcode[1] == "NaN":
		return func(a, b, _ float64) float64 { return min(a, b) }
	}
	panic("unknown instruction " + strings.Join(opcode, "."))
}

// inexact rounds v to float32 and adds an error of at most ulps units in the last place, the same error for equal v.
func inexact(v float64, ulps int) float64 {
	r := float32(v)
	if r == 0 || v != v || math.IsInf(v, 0) {
		return v
	}
	for range int(math.Float32bits(r)*2654435761>>16) % (ulps + 1) {
		r = math.Nextafter32(r, float32(math.Inf(int(math.Float32bits(r)>>3&1)*2-1)))
	}
	return float64(r)
}

func comparison(relation string, n, d, a, b int) func(t *thread) {
	toFloat := toFloat64
	if n == 32 {
		toFloat = toFloat32
	}
	var holds func(a, b float64) bool
	switch strings.TrimSuffix(relation, "u") {
	case "eq":
		holds = func(a, b float64) bool { return a == b }
	case "ne":
		holds = func(a, b float64) bool { return a < b || a > b }
	case "lt":
		holds = func(a, b float64) bool { return a < b }
	case "le":
		holds = func(a, b float64) bool { return a <= b }
	case "gt":
		holds = func(a, b float64) bool { return a > b }
	case "ge":
		holds = func(a, b float64) bool { return a >= b }
	case "nan":
		holds = func(a, b float64) bool { return a != a || b != b }
	default:
		panic("unknown relation " + relation)
	}
	unordered := strings.HasSuffix(relation, "u")
	return func(t *thread) {
		x, y := toFloat(t.r[a]), toFloat(t.r[b])
		t.r[d] = fromBool(holds(x, y) || unordered && (x != x || y != y))
	}
}

func integerComparison(relation string, isSigned bool, n, d, a, b int) func(t *thread) {
	want := map[string][3]bool{ // for each relation, its results if a < b, a = b and a > b
		"eq": {false, true, false}, "ne": {true, false, true}, "lt": {true, false, false},
		"le": {true, true, false}, "gt": {false, false, true}, "ge": {false, true, true},
	}
	holds, ok := want[relation]
	if !ok {
		panic("unknown relation " + relation)
	}
	return func(t *thread) {
		x, y := lowBits(t.r[a], n), lowBits(t.r[b], n)
		if isSigned { // with flipped sign bits, signed numbers have the order of unsigned numbers
			x, y = uint64(signed(x, n))^1<<63, uint64(signed(y, n))^1<<63
		}
		i := 1
		if x < y {
			i = 0
		} else if x > y {
			i = 2
		}
		t.r[d] = fromBool(holds[i])
	}
}

// integral returns the function that computes an instruction on integers, which the caller truncates to the type.
func integral(opcode []string, isSigned bool, n int) func(a, b, c uint64) uint64 {
	s := func(r uint64) int64 { return signed(r, n) }
	u := func(r uint64) uint64 { return lowBits(r, n) }
	switch opcode[0] {
	case "add":
		return func(a, b, _ uint64) uint64 { return a + b }
	case "sub":
		return func(a, b, _ uint64) uint64 { return a - b }
	case "neg":
		return func(a, _, _ uint64) uint64 { return -a }
	case "mul", "mad":
		doubleWidth := opcode[1] == "wide"
		high := opcode[1] == "hi"
		if high && (n != 32 || isSigned) {
			panic("unknown instruction " + strings.Join(opcode, "."))
		}
		return func(a, b, c uint64) uint64 {
			if opcode[0] == "mul" {
				c = 0
			}
			switch {
			case high:
				return u(a)*u(b)>>32 + c
			case doubleWidth && isSigned:
				return uint64(s(a)*s(b)) + c
			case doubleWidth:
				return u(a)*u(b) + c
			}
			return a*b + c
		}
	case "div":
		return func(a, b, _ uint64) uint64 {
			if u(b) == 0 {
				panic(threadError("an integer is divided by 0"))
			}
			if isSigned {
				return uint64(s(a) / s(b))
			}
			return u(a) / u(b)
		}
	case "min", "max":
		minimum := opcode[0] == "min"
		return func(a, b, _ uint64) uint64 {
			if isSigned && s(a) < s(b) == minimum || !isSigned && u(a) < u(b) == minimum {
				return a
			}
			return b
		}
	case "and":
		return func(a, b, _ uint64) uint64 { return a & b }
	case "or":
		return func(a, b, _ uint64) uint64 { return a | b }
	case "xor":
		return func(a, b, _ uint64) uint64 { return a ^ b }
	case "not":
		if opcode[1] == "pred" {
			return func(a, _, _ uint64) uint64 { return a ^ 1 }
		}
		return func(a, _, _ uint64) uint64 { return ^a }
	case "shl":
		return func(a, b, _ uint64) uint64 { return a << min(lowBits(b, 32), 64) }
	case "shr":
		return func(a, b, _ uint64) uint64 {
			if isSigned {
				return uint64(s(a) >> min(lowBits(b, 32), 63))
			}
			return u(a) >> min(lowBits(b, 32), 64)
		}
	case "clz":
		return func(a, _, _ uint64) uint64 { return uint64(bits.LeadingZeros64(u(a)) - (64 - n)) }
	}
	panic("unknown instruction " + strings.Join(opcode, "."))
}

// carrying returns the function that executes a 32-bit instruction that uses the carry flag.
func carrying(opcode []string, d, a, b, c int) func(t *thread) {
	if opcode[len(opcode)-1] != "u32" {
		panic("unknown instruction " + strings.Join(opcode, "."))
	}
	name := opcode[0]
	sets := opcode[len(opcode)-2] == "cc"
	reads := name == "addc" || name == "subc" || name == "madc"
	return func(t *thread) {
		in := uint64(0)
		if reads {
			in = t.carry
		}
		x, y := lowBits(t.r[a], 32), lowBits(t.r[b], 32)
		var v uint64
		switch name {
		case "add", "addc":
			v = x + y + in
		case "sub", "subc":
			v = x - y - in // bit 32 holds the borrow
		default: // the instructions mad and madc
			product := x * y
			if opcode[1] == "hi" {
				product >>= 32
			}
			v = lowBits(product, 32) + lowBits(t.r[c], 32) + in
		}
		t.r[d] = lowBits(v, 32)
		if sets {
			t.carry = v >> 32 & 1
		}
	}
}

// move returns the function that executes a mov from a register, its halves, or a special register.
func (f *function) move(x []string) func(t *thread) {
	if strings.HasPrefix(x[0], "{") || strings.HasPrefix(x[1], "{") {
		if strings.HasPrefix(x[0], "{") {
			halves := innerOperands(x[0])
			low, high, a := f.register(halves[0]), f.register(halves[1]), f.register(x[1])
			return func(t *thread) {
				v := t.r[a]
				t.r[low], t.r[high] = lowBits(v, 32), v>>32
			}
		}
		halves := innerOperands(x[1])
		low, high, d := f.register(halves[0]), f.register(halves[1]), f.register(x[0])
		return func(t *thread) { t.r[d] = lowBits(t.r[low], 32) | t.r[high]<<32 }
	}
	d := f.register(x[0])
	if name, axis, ok := strings.Cut(x[1], "."); ok {
		i := strings.Index("xyz", axis)
		switch name {
		case "%tid":
			return func(t *thread) { t.r[d] = uint64(t.xyz[i]) }
		case "%ctaid":
			return func(t *thread) { t.r[d] = uint64(t.b.id[i]) }
		case "%ntid":
			return func(t *thread) { t.r[d] = uint64(t.b.threads[i]) }
		case "%nctaid":
			return func(t *thread) { t.r[d] = uint64(t.b.grid[i]) }
		}
		panic("unknown register " + x[1])
	}
	a := f.register(x[1])
	return func(t *thread) { t.r[d] = t.r[a] }
}

// transfer returns the function that executes a load or a store.
func (f *function) transfer(opcode, x []string) func(t *thread) {
	s, ok := map[string]space{"global": global, "shared": shared, "local": local, "param": parameters}[opcode[1]]
	if !ok {
		panic("unknown space " + opcode[1])
	}
	bytes, count := widthOf(opcode[len(opcode)-1]), 1
	if v := opcode[len(opcode)-2]; v == "v2" || v == "v4" {
		count = int(v[1] - '0')
	}
	load := opcode[0] == "ld"
	location, values := x[0], x[1]
	if load {
		location, values = x[1], x[0]
	}
	var regs []int
	for _, v := range innerOperands(values) {
		regs = append(regs, f.register(v))
	}
	base, offset := strings.Trim(location, "[]"), uint64(0)
	if name, displacement, ok := strings.Cut(base, "+"); ok {
		base, offset = name, uint64(number(displacement))
	}
	baseRegister := f.register(base)
	if len(regs) != count {
		panic("wrong number of registers")
	}
	return func(t *thread) {
		p := t.pointer(s, t.r[baseRegister]+offset, bytes*count, !load)
		for i, r := range regs {
			p := unsafe.Add(p, i*bytes)
			switch {
			case load && bytes == 8:
				t.r[r] = *(*uint64)(p)
			case load && bytes == 4:
				t.r[r] = uint64(*(*uint32)(p))
			case load && bytes == 2:
				t.r[r] = uint64(*(*uint16)(p))
			case bytes == 8:
				*(*uint64)(p) = t.r[r]
			case bytes == 4:
				*(*uint32)(p) = uint32(t.r[r])
			case bytes == 2:
				*(*uint16)(p) = uint16(t.r[r])
			default:
				panic(threadError("bytes one at a time"))
			}
		}
	}
}

// atomicMax returns the function that executes atom.global.max.u64. The race detector ignores it, because two
// atomic accesses are not a race.
func (f *function) atomicMax(opcode, x []string) func(t *thread) {
	if strings.Join(opcode, ".") != "atom.global.max.u64" {
		panic("unknown instruction " + strings.Join(opcode, "."))
	}
	d, addressRegister, a := f.register(x[0]), f.register(strings.Trim(x[1], "[]")), f.register(x[2])
	return func(t *thread) {
		p := (*uint64)(t.b.m.find(t.r[addressRegister], 8))
		t.r[d] = *p
		*p = max(*p, t.r[a])
	}
}

// convert returns the function that executes a conversion. opcode lists "cvt", the modes, the type
// of the result and the type of the operand.
func (f *function) convert(opcode, x []string) func(t *thread) {
	d, a := f.register(x[0]), f.register(x[1])
	to, from := opcode[len(opcode)-2], opcode[len(opcode)-1]
	modes := strings.Join(opcode[1:len(opcode)-2], ".")
	n, m := 8*widthOf(to), 8*widthOf(from)
	if from[0] != 'f' {
		value := func(r uint64) uint64 { return lowBits(r, m) }
		if from[0] == 's' {
			value = func(r uint64) uint64 { return uint64(signed(r, m)) }
		}
		switch {
		case to[0] != 'f':
			return func(t *thread) { t.r[d] = lowBits(value(t.r[a]), n) }
		case modes != "rn" || m > 32: // the result is exact in float64
			panic("unknown conversion " + strings.Join(opcode, "."))
		case n == 32:
			return func(t *thread) { t.r[d] = fromFloat32(float64(int64(value(t.r[a])))) }
		}
		return func(t *thread) { t.r[d] = fromFloat64(float64(int64(value(t.r[a])))) }
	}
	toFloat := toFloat64
	if m == 32 {
		toFloat = toFloat32
	}
	change := func(v float64) float64 { return v }
	switch modes {
	case "", "rn":
	case "rni":
		change = math.RoundToEven
	case "rzi":
		change = math.Trunc
	case "sat":
		change = func(v float64) float64 {
			if v != v {
				return 0
			}
			return max(0, min(v, 1))
		}
	default:
		panic("unknown conversion " + strings.Join(opcode, "."))
	}
	switch to {
	case "f64":
		return func(t *thread) { t.r[d] = fromFloat64(change(toFloat(t.r[a]))) }
	case "f32":
		return func(t *thread) { t.r[d] = fromFloat32(change(toFloat(t.r[a]))) }
	case "f16":
		return func(t *thread) { t.r[d] = uint64(halfOf(toFloat(t.r[a]))) }
	case "s32":
		return func(t *thread) {
			v := change(toFloat(t.r[a]))
			if v != v {
				v = 0
			}
			t.r[d] = lowBits(uint64(int64(max(math.MinInt32, min(v, math.MaxInt32)))), 32)
		}
	}
	panic("unknown conversion " + strings.Join(opcode, "."))
}

// halfOf rounds a number to FP16, ties to even.
func halfOf(v float64) uint16 {
	sign := uint16(math.Float64bits(v) >> 48 & 0x8000)
	size := math.Abs(v)
	switch {
	case v != v:
		return 0x7fff
	case size >= 65520: // halfway between the largest finite number, 65504, and the next multiple of 32
		return sign | 0x7c00
	}
	e := -14 // the difference of adjacent FP16 numbers near v is 2^(e−10)
	if size >= 0x1p-14 {
		e = math.Ilogb(size)
	}
	return sign + uint16((e+14)<<10) + uint16(math.RoundToEven(math.Ldexp(size, 10-e)))
}
