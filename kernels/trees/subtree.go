package trees

import (
	"context"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/mercer-go/mercer/host"
	"github.com/mercer-go/mercer/internal/pairwise"
	"github.com/mercer-go/mercer/kernels"
	"github.com/mercer-go/mercer/kernels/objects"
)

// Subtree is the tree kernel of Collins and Duffy (2001, Convolution kernels for natural language,
// NIPS 14): the number of subtrees that two trees have in common, where a subtree has more than one
// node and contains, for each of its nodes, either all or none of the node's children. A production
// is a node's label with the labels and words of its children. Then
//
//	k(a, b) = Σ_{m of a} Σ_{n of b} C(m, n)
//	C(m, n) = 0                                          if the productions differ
//	        = Decay Π_i (1 + C(child_i m, child_i n))   otherwise
//
// where i runs over the children that are nodes. Decay in (0, 1] downweights large subtrees: a subtree of p
// productions has the weight Decay^p. k is divided by √(k(a,a) k(b,b)) unless Raw is set.
//
// The cost is at most O(|a|·|b|), and close to |a|+|b| for parse trees of natural language (Moschitti 2006, Making
// tree kernels practical for natural language learning).
type Subtree struct {
	Decay float64
	Raw   bool // whether k is not normalized
}

func init() {
	objects.Register(kernels.Description{
		Name: "subtree", Aliases: []string{"sst"},
		Formula: "Σ over common subtrees of decay^(productions), normalized",
		Parameters: []kernels.Parameter{
			{Name: "decay", Type: kernels.OneNumber, Default: "0.5", Rule: decayRule.String()},
			pairwise.Normalized,
		},
		Example: "subtree(decay=0.5)",
		Source:  "Collins and Duffy (2001), Convolution kernels for natural language, NIPS 14",
	}, func(v map[string]float64) (objects.Kernel, error) {
		raw, err := pairwise.Raw(v)
		return Subtree{Decay: v["decay"], Raw: raw}, err
	})
}

func (k Subtree) String() string {
	raw := ""
	if k.Raw {
		raw = ",normalized=0"
	}
	return "subtree(decay=" + strconv.FormatFloat(k.Decay, 'g', -1, 64) + raw + ")"
}

func (k Subtree) Input() objects.Input { return objects.Tree }

// Check requires 0 < Decay ≤ 1.
func (k Subtree) Check() error {
	return decayRule.Check("trees: subtree: decay", k.Decay)
}

var decayRule = kernels.Rule{Min: math.SmallestNonzeroFloat64, Max: 1}

func (k Subtree) Gram(ctx context.Context, texts []string, o objects.Options) (host.Matrix[float64], error) {
	g := grammar{}
	trees, err := k.read(g, texts)
	if err != nil {
		return host.Matrix[float64]{}, err
	}
	if err := k.feasible(g, trees, trees, true, o); err != nil {
		return host.Matrix[float64]{}, err
	}
	return k.evaluator().Gram(ctx, len(trees), o, k.worker(g, trees, trees))
}

func (k Subtree) Cross(ctx context.Context, a, b []string, o objects.Options) (host.Matrix[float64], error) {
	g := grammar{}
	ta, err := k.read(g, a)
	if err != nil {
		return host.Matrix[float64]{}, err
	}
	tb, err := k.read(g, b)
	if err != nil {
		return host.Matrix[float64]{}, err
	}
	if err := k.feasible(g, ta, tb, false, o); err != nil {
		return host.Matrix[float64]{}, err
	}
	return k.evaluator().Cross(ctx, len(a), len(b), o, k.worker(g, ta, tb), [2]pairwise.Worker{k.worker(g, ta, ta), k.worker(g, tb, tb)})
}

func (k Subtree) Diag(ctx context.Context, texts []string, o objects.Options) ([]float64, error) {
	g := grammar{}
	trees, err := k.read(g, texts)
	if err != nil {
		return nil, err
	}
	if err := k.feasible(g, trees, nil, false, o); err != nil {
		return nil, err
	}
	return k.evaluator().Diag(ctx, len(trees), o, k.worker(g, trees, trees))
}

// feasible returns an error if a call needs too many operations or too much memory. A call evaluates each tree in the
// list a with all trees in b or, if lower is set, with itself and the preceding trees in a.
func (k Subtree) feasible(g grammar, a, b []indexed, lower bool, o objects.Options) error {
	operations, pairs := operations(g, a, b, lower), 0.0
	for _, list := range [][]indexed{a, b} {
		for i := range list {
			counts := map[int32]float64{}
			for _, p := range list[i].production {
				counts[p]++
			}
			sum := 0.0
			for _, n := range counts {
				sum += n * n
			}
			pairs = max(pairs, sum)
			if !lower {
				operations += sum
			}
		}
	}
	const description = "trees: subtree: pairs of nodes with the same production"
	if err := pairwise.Feasible(description, operations, "make productions more distinct, with finer labels"); err != nil {
		return err
	}
	// pairs is the largest number of pairs of nodes with the same production in a comparison of a tree with itself.
	// By Cauchy–Schwarz, two different trees have at most this number.
	return pairwise.CheckMemory(o, description, pairs)
}

// operations returns the number of operations that matcher counts for a call with these arguments: see feasible.
func operations(g grammar, a, b []indexed, lower bool) float64 {
	work, sum := make([]float64, len(g)), 0.0
	add := func(t indexed) {
		for n, p := range t.production {
			work[p] += float64(1 + len(t.children[n]))
		}
	}
	if !lower {
		for _, t := range b {
			add(t)
		}
	}
	for _, t := range a {
		if lower {
			add(t)
		}
		for _, p := range t.production {
			sum += work[p]
		}
	}
	return sum
}

func (k Subtree) evaluator() pairwise.Evaluator {
	return pairwise.Evaluator{Raw: k.Raw, Infinite: func(i int) error {
		return fmt.Errorf("trees: subtree: tree %d has more subtrees than a float64 can count: lower decay, now %v", i+1, k.Decay)
	}}
}

// grammar maps the text of each production to its number.
type grammar map[string]int32

// indexed is a tree with numbered productions.
type indexed struct {
	production []int32
	children   [][]int32 // indices of each node's children that are nodes
}

// read parses the texts and numbers the productions of the trees.
func (k Subtree) read(g grammar, texts []string) ([]indexed, error) {
	if err := k.Check(); err != nil {
		return nil, err
	}
	trees := make([]indexed, len(texts))
	for i, text := range texts {
		t, err := parse(text)
		if err != nil {
			err.tree = i + 1
			return nil, err
		}
		trees[i] = g.index(t)
	}
	return trees, nil
}

func (g grammar) index(t *tree) indexed {
	x := indexed{make([]int32, len(t.nodes)), make([][]int32, len(t.nodes))}
	var b strings.Builder
	for i, n := range t.nodes {
		// Labels and words contain no brackets or spaces, so that the text identifies the production.
		b.Reset()
		b.WriteString(n.label)
		for _, c := range n.children {
			if c.node >= 0 {
				b.WriteString(" (" + t.nodes[c.node].label)
				x.children[i] = append(x.children[i], c.node)
			} else {
				b.WriteString(" " + c.word)
			}
		}
		number, ok := g[b.String()]
		if !ok {
			number = int32(len(g))
			g[b.String()] = number
		}
		x.production[i] = number
	}
	return x
}

func (k Subtree) worker(g grammar, a, b []indexed) func(stop pairwise.Stop) func(i, lo, hi int, out []float64) {
	return func(stop pairwise.Stop) func(i, lo, hi int, out []float64) {
		m := &matcher{decay: k.Decay, start: make([]int32, len(g)+1)}
		return func(i, lo, hi int, out []float64) {
			m.load(a[i])
			for j := lo; j < hi && !stop(0); j++ {
				out[j-lo] = m.value(b[j], stop)
			}
		}
	}
}

// matcher evaluates the kernel of one tree with any number of other trees.
type matcher struct {
	decay  float64
	tree   indexed
	start  []int32 // for each production, the index in the list nodes of its first node
	nodes  []int32
	rank   []int32   // rank of a node among the nodes with its production
	common []float64 // C(m, n), grouped by the nodes n of b: the values for all nodes m of tree with the same production
	first  []int     // for each node n of b, the index in common of its first value

	operations int // number of operations on pairs of nodes and of children in all calls of value
}

// load sets the tree and sorts its nodes by production.
func (m *matcher) load(t indexed) {
	m.tree = t
	clear(m.start)
	for _, p := range t.production {
		m.start[p]++
	}
	sum := int32(0)
	for p, n := range m.start {
		sum += n
		m.start[p] = sum
	}
	m.nodes = append(m.nodes[:0], t.production...) // append sets the length; the values are overwritten below
	m.rank = append(m.rank[:0], t.production...)
	for i := len(t.production) - 1; i >= 0; i-- {
		p := t.production[i]
		m.start[p]--
		m.nodes[m.start[p]] = int32(i)
	}
	for position, i := range m.nodes {
		m.rank[i] = int32(position) - m.start[t.production[i]]
	}
}

// value returns k of the loaded tree and b without normalization. The nodes of b are in postorder, so that pairs of
// children are evaluated before pairs of their parents.
func (m *matcher) value(b indexed, stop pairwise.Stop) float64 {
	m.common, m.first = m.common[:0], m.first[:0]
	sum, firstNode, pending := 0.0, 0, 0
	for n, p := range b.production {
		children := b.children[n]
		work := int(m.start[p+1]-m.start[p]) * (1 + len(children))
		m.operations += work
		if pending += 1 + work; pending >= pairwise.Poll {
			if stop(float64(n-firstNode) / float64(len(b.production))) {
				return 0
			}
			firstNode, pending = n, 0
		}
		m.first = append(m.first, len(m.common))
		for _, i := range m.nodes[m.start[p]:m.start[p+1]] {
			c := m.decay
			for q, child := range m.tree.children[i] {
				if otherChild := children[q]; m.tree.production[child] == b.production[otherChild] {
					c *= 1 + m.common[m.first[otherChild]+int(m.rank[child])]
				}
			}
			m.common = append(m.common, c)
			sum += c
		}
	}
	return sum
}
