package onnx

import (
	"fmt"
	"math"
	"strconv"

	"google.golang.org/protobuf/encoding/protowire"
)

// These are the numbers of the element types in ONNX's TensorProto.DataType.
const (
	float32Type = 1
	int64Type   = 7
	stringType  = 8
	boolType    = 9
	float64Type = 11
)

// A value is the name of a tensor in the graph.
type value string

// A graph collects the nodes and constants of a GraphProto. The first error is in err; later calls continue.
type graph struct {
	float     int    // element type of all numbers: float32Type or float64Type
	nodes     []byte // encoded fields of GraphProto
	constants []byte
	ends      []byte // encoded inputs and outputs of the graph
	outputs   []string
	count     *int // number of names made so far, shared with the graphs of loop bodies
	err       error
}

// attribute is the encoded AttributeProto of a node.
type attribute []byte

func message(b []byte, field protowire.Number, content []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(b, field, protowire.BytesType), content)
}

func text(b []byte, field protowire.Number, content string) []byte {
	return message(b, field, []byte(content))
}

func integer(b []byte, field protowire.Number, v int64) []byte {
	return protowire.AppendVarint(protowire.AppendTag(b, field, protowire.VarintType), uint64(v))
}

func intAttribute(name string, v int64) attribute {
	return integer(integer(text(nil, 1, name), 3, v), 20, 2)
}

func intsAttribute(name string, list ...int64) attribute {
	a := text(nil, 1, name)
	for _, v := range list {
		a = integer(a, 8, v)
	}
	return integer(a, 20, 7)
}

func (g *graph) name() value {
	*g.count++
	return value("v" + strconv.Itoa(*g.count))
}

// op appends a node with one output, and returns that output.
func (g *graph) op(kind string, inputs ...value) value { return g.node(kind, nil, inputs...) }

func (g *graph) node(kind string, attributes []attribute, inputs ...value) value {
	out := g.name()
	g.nodes = message(g.nodes, 1, encodeNode(kind, attributes, inputs, out))
	return out
}

func encodeNode(kind string, attributes []attribute, inputs []value, outputs ...value) []byte {
	var n []byte
	for _, in := range inputs {
		n = text(n, 1, string(in))
	}
	for _, out := range outputs {
		n = text(n, 2, string(out))
	}
	n = text(n, 4, kind)
	for _, a := range attributes {
		n = message(n, 5, a)
	}
	return n
}

// constant appends a tensor and returns its name. elements is an encoded field of TensorProto: the tensor's data.
func (g *graph) constant(kind int, shape []int, elements []byte) value {
	name := g.name()
	var t []byte
	for _, d := range shape {
		t = integer(t, 1, int64(d))
	}
	t = append(text(integer(t, 2, int64(kind)), 8, string(name)), elements...)
	g.constants = message(g.constants, 5, t)
	return name
}

// numbers returns a constant tensor of numbers. It records an error for a number that float32 cannot represent.
func (g *graph) numbers(list []float64, shape ...int) value {
	var raw []byte
	for _, v := range list {
		if g.float == float64Type {
			raw = protowire.AppendFixed64(raw, math.Float64bits(v))
			continue
		}
		w := float32(v)
		if math.IsInf(float64(w), 0) && !math.IsInf(v, 0) {
			g.fail(fmt.Errorf("the number %v of the model exceeds the range of float32: export in float64", v))
		}
		raw = protowire.AppendFixed32(raw, math.Float32bits(w))
	}
	return g.constant(g.float, shape, message(nil, 9, raw))
}

func (g *graph) number(v float64) value { return g.numbers([]float64{v}) }

// integers returns a constant vector of integers.
func (g *graph) integers(list ...int64) value {
	var raw []byte
	for _, v := range list {
		raw = protowire.AppendFixed64(raw, uint64(v))
	}
	return g.constant(int64Type, []int{len(list)}, message(nil, 9, raw))
}

// texts returns a constant vector of strings.
func (g *graph) texts(list []string) value {
	var elements []byte
	for _, s := range list {
		elements = text(elements, 6, s)
	}
	return g.constant(stringType, []int{len(list)}, elements)
}

func (g *graph) fail(err error) {
	if g.err == nil {
		g.err = err
	}
}

// sum returns the sums of v over an axis. The axis is removed unless keepDims is true.
func (g *graph) sum(v value, axis int64, keepDims bool) value {
	k := int64(0)
	if keepDims {
		k = 1
	}
	return g.node("ReduceSum", []attribute{intAttribute("keepdims", k)}, v, g.integers(axis))
}

// product returns ab + c, or abᵀ + c if transposed is true. The optional c has one row. The node is not a MatMul,
// because onnxruntime would fuse a MatMul with a multiplication by a constant, and round the constant to float32.
func (g *graph) product(a, b value, transposed bool, c ...value) value {
	var attributes []attribute
	if transposed {
		attributes = []attribute{intAttribute("transB", 1)}
	}
	return g.node("Gemm", attributes, append([]value{a, b}, c...)...)
}

// concat joins tensors along axis 1.
func (g *graph) concat(list []value) value {
	if len(list) == 1 {
		return list[0]
	}
	return g.node("Concat", []attribute{intAttribute("axis", 1)}, list...)
}

// cast converts v to numbers.
func (g *graph) cast(v value) value {
	return g.node("Cast", []attribute{intAttribute("to", int64(g.float))}, v)
}

// These are the numbers of the fields of GraphProto for inputs and outputs.
const inputField, outputField = 11, 12

// end declares an input or an output of the graph. A dimension of 0 stands for the number of rows.
// A nil shape declares no shape; an empty shape declares a scalar.
func (g *graph) end(field protowire.Number, name value, kind int, comment string, shape ...int) {
	var dimensions []byte
	for _, d := range shape {
		if d == 0 {
			dimensions = message(dimensions, 1, text(nil, 2, "rows"))
		} else {
			dimensions = message(dimensions, 1, integer(nil, 1, int64(d)))
		}
	}
	tensor := integer(nil, 1, int64(kind))
	if shape != nil {
		tensor = message(tensor, 2, dimensions)
	}
	info := message(text(nil, 1, string(name)), 2, message(nil, 1, tensor))
	if comment != "" {
		info = text(info, 3, comment)
	}
	g.ends = message(g.ends, field, info)
}

// output declares v as an output of the graph under another name.
func (g *graph) output(name string, v value, kind int, comment string, shape ...int) {
	g.nodes = message(g.nodes, 1, encodeNode("Identity", nil, []value{v}, value(name)))
	g.end(outputField, value(name), kind, comment, shape...)
	g.outputs = append(g.outputs, name)
}

// loop repeats body at most limit times, until its result `more` is false, and returns the last tensor of numbers.
func (g *graph) loop(limit int, numbers, bools value, body func(g *graph, numbers, bools value) (nextNumbers, nextBools, more value)) value {
	inner := &graph{float: g.float, count: g.count}
	names := make([]value, 4)
	for i, kind := range []int{int64Type, boolType, g.float, boolType} {
		var shape []int
		if i < 2 { // scalars: the number of the iteration, and the condition of the loop
			shape = []int{}
		}
		names[i] = g.name()
		inner.end(inputField, names[i], kind, "", shape...)
	}
	nextNumbers, nextBools, more := body(inner, names[2], names[3])
	inner.end(outputField, more, boolType, "")
	inner.end(outputField, nextNumbers, g.float, "")
	inner.end(outputField, nextBools, boolType, "")
	g.fail(inner.err)
	count := g.constant(int64Type, nil, message(nil, 9, protowire.AppendFixed64(nil, uint64(limit))))
	initial := g.constant(boolType, nil, message(nil, 9, []byte{1}))
	out := g.name()
	content := integer(message(text(nil, 1, "body"), 6, inner.encode("body")), 20, 5)
	g.nodes = message(g.nodes, 1, encodeNode("Loop", []attribute{content}, []value{count, initial, numbers, bools}, out, g.name()))
	return out
}

// encode returns the GraphProto.
func (g *graph) encode(name string) []byte {
	b := text(append([]byte(nil), g.nodes...), 2, name)
	return append(append(b, g.constants...), g.ends...)
}

// opset and irVersion are versions of ONNX from 2020, which have all operators of this package, also for float64.
const opset, irVersion = 13, 7

// encodeModel returns the ModelProto of a graph. metadata holds pairs of a key and a value.
func encodeModel(graph []byte, comment string, metadata [][2]string) []byte {
	b := integer(nil, 1, irVersion)
	b = text(text(b, 2, "mercer"), 6, comment)
	b = message(b, 7, graph)
	b = message(b, 8, integer(text(nil, 1, ""), 2, opset))
	for _, pair := range metadata {
		b = message(b, 14, text(text(nil, 1, pair[0]), 2, pair[1]))
	}
	return b
}
