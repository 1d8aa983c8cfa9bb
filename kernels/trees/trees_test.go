package trees_test

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/mercer-go/mercer/kernels/objects"
	"github.com/mercer-go/mercer/kernels/trees"
)

const seed = 5

func TestParse(t *testing.T) {
	for text, want := range map[string]string{
		"(S (NP we) (VP sleep))":                  "",
		"( (S (NP we) (VP\tsleep)) )":             "( (S (NP we) (VP sleep)))",
		"(NP the (NN cat))":                       "",
		"  ( S\n  (NP (DT the)(NN häuser)))  ":    "(S (NP (DT the) (NN häuser)))",
		"(punct (PUNCT -LRB-))":                   "",
		"(A (B (C (D d))) (B (C (D d)) e (F f)))": "",
	} {
		tree, err := trees.Parse(text)
		if err != nil {
			t.Errorf("%q: %v", text, err)
			continue
		}
		if want == "" {
			want = text
		}
		if tree.String() != want {
			t.Errorf("%q is read as %q", text, tree)
		}
		if reparsed, err := trees.Parse(tree.String()); err != nil || reparsed.String() != want || reparsed.Nodes() != tree.Nodes() {
			t.Errorf("%q: read again it is %v, %v", text, reparsed, err)
		}
	}
	for text, want := range map[string]string{
		"":                                 "trees: character 1: there is no tree",
		"  ":                               "trees: character 3: there is no tree",
		"S":                                `trees: character 1: a tree begins with (, not with "S"`,
		"(S (NP we)":                       `trees: character 1: the bracket of the node "S" is not closed`,
		"(S (NP we":                        `trees: character 4: the bracket of the node "NP" is not closed`,
		"(S (ü a) (NP))":                   `trees: character 10: the node "NP" has no children`,
		"()":                               `trees: character 1: the node "" has no children`,
		"(S we))":                          `trees: character 7: the tree is complete, but ")" follows`,
		"(S we) (S you)":                   `trees: character 8: the tree is complete, but "(S you)" follows`,
		")":                                "trees: character 1: a bracket is closed that was not opened",
		strings.Repeat("(a ", 10001) + "b": "trees: character 30001: more than 10000 brackets are open",
	} {
		_, err := trees.Parse(text)
		if err == nil || err.Error() != want {
			t.Errorf("%.40q: got %v, want %s", text, err, want)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add("(S (NP we) (VP sleep))")
	f.Add("( (S a\xff(b c)))")
	f.Fuzz(func(t *testing.T, text string) {
		tree, err := trees.Parse(text)
		if err != nil {
			return
		}
		reparsed, err := trees.Parse(tree.String())
		if err != nil || reparsed.String() != tree.String() {
			t.Errorf("%q is read as %q, that as %v: %v", text, tree, reparsed, err)
		}
	})
}

// subtrees lists the subtrees with the given root: it maps their texts to their numbers of productions.
func subtrees(tree *bracket) map[string]int {
	// Enumerate every combination of children, with each child expanded or not.
	options := []string{"(" + tree.label}
	sizes := []int{1}
	for _, c := range tree.children {
		var texts []string
		var counts []int
		for i, o := range options {
			if c.label == "" {
				texts, counts = append(texts, o+" "+c.word), append(counts, sizes[i])
				continue
			}
			texts, counts = append(texts, o+" "+c.label+"/"), append(counts, sizes[i])
			for s, n := range subtrees(c) {
				texts, counts = append(texts, o+" "+s), append(counts, sizes[i]+n)
			}
		}
		options, sizes = texts, counts
	}
	sizeOf := map[string]int{}
	for i, o := range options {
		sizeOf[o+")"] = sizes[i]
	}
	return sizeOf
}

// bracket is the tree type of the tests. A node has a label; a word has no label.
type bracket struct {
	label, word string
	children    []*bracket
}

func (b *bracket) String() string {
	if b.label == "" {
		return b.word
	}
	s := "(" + b.label
	for _, c := range b.children {
		s += " " + c.String()
	}
	return s + ")"
}

// walk counts the subtrees at all nodes of b by their texts.
func walk(b *bracket, counts map[string][2]int) {
	if b.label == "" {
		return
	}
	for s, n := range subtrees(b) {
		counts[s] = [2]int{counts[s][0] + 1, n}
	}
	for _, c := range b.children {
		walk(c, counts)
	}
}

func brute(a, b *bracket, decay float64) float64 {
	ca, cb := map[string][2]int{}, map[string][2]int{}
	walk(a, ca)
	walk(b, cb)
	sum := 0.0
	for s, v := range ca {
		sum += float64(v[0]*cb[s][0]) * math.Pow(decay, float64(v[1]))
	}
	return sum
}

func random(r *rand.Rand, depth int) *bracket {
	b := &bracket{label: string(rune('A' + r.IntN(2)))}
	for range 1 + r.IntN(2) {
		if depth == 0 || r.IntN(3) == 0 {
			b.children = append(b.children, &bracket{word: string(rune('x' + r.IntN(2)))})
		} else {
			b.children = append(b.children, random(r, depth-1))
		}
	}
	return b
}

func TestSubtreeBruteForce(t *testing.T) {
	t.Log("seed", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	var list []*bracket
	var texts []string
	for range 25 {
		b := random(r, 3)
		list, texts = append(list, b), append(texts, b.String())
	}
	for _, decay := range []float64{1, 0.4} {
		k := trees.Subtree{Decay: decay, Raw: true}
		gram, err := k.Gram(context.Background(), texts, objects.Options{})
		if err != nil {
			t.Fatal(err)
		}
		for i := range list {
			for j := range list {
				got, want := gram.Row(i)[j], brute(list[i], list[j], decay)
				// The tolerance is relative, because all terms are positive. A term is a product with about ten
				// roundings.
				if math.Abs(got-want) > 200*0x1p-53*want {
					t.Fatalf("%s and %s: %v, want %v", texts[i], texts[j], got, want)
				}
			}
		}
	}
}

// TestWorkedNounPhrase checks a noun phrase similar to the example of Collins and Duffy (2001).
func TestWorkedNounPhrase(t *testing.T) {
	ctx, k := context.Background(), trees.Subtree{Decay: 1, Raw: true}
	gram, err := k.Gram(ctx, []string{"(NP (D the) (N apple))", "(NP (D an) (N apple))"}, objects.Options{})
	if err != nil {
		t.Fatal(err)
	}
	// The first phrase has six subtrees: D → the, N → apple, and NP → D N with each of its two children expanded
	// or not. The second phrase has three of them: N → apple, and NP → D N with N expanded or not.
	for i, want := range []float64{6, 3, 3, 6} {
		if gram.Data[i] != want {
			t.Errorf("value %d is %v, want %v", i, gram.Data[i], want)
		}
	}
}

func TestProperties(t *testing.T) {
	t.Log("seed", seed)
	ctx := context.Background()
	r := rand.New(rand.NewPCG(seed, 1))
	var texts []string
	for range 90 {
		texts = append(texts, random(r, 5).String())
	}
	for _, k := range []objects.Kernel{trees.Subtree{Decay: 0.5}, trees.Subtree{Decay: 1, Raw: true}} {
		parsed, err := objects.Parse(k.String())
		if err != nil || parsed != k {
			t.Errorf("Parse(%q) is %v, %v", k, parsed, err)
		}
		gram, err := k.Gram(ctx, texts, objects.Options{Threads: 1})
		if err != nil {
			t.Fatal(err)
		}
		parallel, err := k.Gram(ctx, texts, objects.Options{Threads: 4})
		if err != nil {
			t.Fatal(err)
		}
		cross, err := k.Cross(ctx, texts[:30], texts, objects.Options{})
		if err != nil {
			t.Fatal(err)
		}
		diag, err := k.Diag(ctx, texts, objects.Options{})
		if err != nil {
			t.Fatal(err)
		}
		for i := range texts {
			for j, v := range gram.Row(i) {
				if v != parallel.Row(i)[j] || v != gram.Row(j)[i] {
					t.Fatalf("%v: (%d, %d) depends on the number of workers, or is not symmetric", k, i, j)
				}
				// Gram and Cross add the same terms in different orders.
				if i < 30 && math.Abs(v-cross.Row(i)[j]) > 2000*0x1p-53*v {
					t.Fatalf("%v: (%d, %d) is %v in Gram, %v in Cross", k, i, j, v, cross.Row(i)[j])
				}
			}
			if diag[i] != gram.Row(i)[i] {
				t.Errorf("%v: diagonal %d is %v, Diag has %v", k, i, gram.Row(i)[i], diag[i])
			}
		}
	}
}

func TestErrors(t *testing.T) {
	ctx := context.Background()
	_, err := trees.Subtree{Decay: 0.5}.Gram(ctx, []string{"(A a)", "(A b"}, objects.Options{})
	if want := `trees: tree 2, character 1: the bracket of the node "A" is not closed`; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
	for decay, rule := range map[string]string{"0": "a finite number > 0", "1.5": "at most 1", "-1": "a finite number > 0"} {
		want := "trees: subtree: decay must be " + rule + ", got " + decay
		if _, err := objects.Parse("subtree(decay=" + decay + ")"); err == nil || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
	// The tree has more than 2¹⁰²⁴ subtrees, because each child of the root is expanded or not.
	wideTree := "(S" + strings.Repeat(" (A a)", 1100) + ")"
	_, err = trees.Subtree{Decay: 1}.Gram(ctx, []string{"(A a)", wideTree}, objects.Options{})
	if want := "trees: subtree: tree 2 has more subtrees than a float64 can count: lower decay, now 1"; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
	canceled, cancel := context.WithCancel(ctx)
	cancel()
	if _, err := (trees.Subtree{Decay: 1}).Gram(canceled, []string{"(A a)"}, objects.Options{}); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}
