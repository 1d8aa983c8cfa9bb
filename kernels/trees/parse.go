package trees

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
)

// Tree is a tree returned by Parse. Its nodes are in postorder: children precede their parent, and
// the root is last.
type Tree struct{ nodes []node }

type node struct {
	label    string
	children []child
}

// child is either the number of a node or a word.
type child struct {
	node int32 // −1 for a word
	word string
}

// Nodes returns the number of nodes, excluding words.
func (t *Tree) Nodes() int { return len(t.nodes) }

// String returns the tree in brackets, with one space between children; "" for a tree without
// nodes.
func (t *Tree) String() string {
	if len(t.nodes) == 0 {
		return ""
	}
	var b strings.Builder
	t.write(&b, len(t.nodes)-1)
	return b.String()
}

func (t *Tree) write(b *strings.Builder, i int) {
	n := t.nodes[i]
	b.WriteString("(" + n.label)
	for _, c := range n.children {
		b.WriteByte(' ')
		if c.node >= 0 {
			t.write(b, int(c.node))
		} else {
			b.WriteString(c.word)
		}
	}
	b.WriteByte(')')
}

// maxDepth bounds the nesting of brackets, so that no text can exhaust the stack of a recursive
// traversal.
const maxDepth = 10_000

// ParseError is an error in a tree's text, with its position.
type ParseError struct {
	Tree   int // number of the tree, from 1; 0 if there is only one
	Column int // in characters from 1
	Detail string
}

func (e *ParseError) Error() string {
	if e.Tree > 0 {
		return fmt.Sprintf("trees: tree %d, column %d: %s", e.Tree, e.Column, e.Detail)
	}
	return fmt.Sprintf("trees: column %d: %s", e.Column, e.Detail)
}

// Parse reads a tree from its text. An error is a *ParseError.
func Parse(text string) (*Tree, error) {
	t, err := parse(text)
	if err != nil {
		return nil, err
	}
	return t, nil
}

func parse(text string) (*Tree, *ParseError) {
	fail := func(at int, format string, args ...any) (*Tree, *ParseError) {
		return nil, &ParseError{Column: len([]rune(text[:at])) + 1, Detail: fmt.Sprintf(format, args...)}
	}
	type open struct {
		node
		at int // where its bracket is
	}
	var stack []open
	t := &Tree{}
	complete := false
	for at := 0; at < len(text); {
		rest := text[at:]
		if trimmed := strings.TrimLeftFunc(rest, unicode.IsSpace); len(trimmed) < len(rest) {
			at += len(rest) - len(trimmed)
			continue
		}
		if complete {
			return fail(at, "the tree is complete, but %s follows", shortened(rest))
		}
		switch rest[0] {
		case '(':
			if len(stack) == maxDepth {
				return fail(at, "more than %d brackets are open", maxDepth)
			}
			// The label follows, possibly after spaces; a bracket means that there is no label.
			trimmed := strings.TrimLeftFunc(rest[1:], unicode.IsSpace)
			label := trimmed[:wordLength(trimmed)]
			stack = append(stack, open{node{label: label}, at})
			at += len(rest) - len(trimmed) + len(label)
		case ')':
			if len(stack) == 0 {
				return fail(at, "a bracket is closed that was not opened")
			}
			top := stack[len(stack)-1]
			stack = stack[:len(stack)-1]
			if len(top.children) == 0 {
				return fail(top.at, "the node %q has no children", top.label)
			}
			number := int32(len(t.nodes))
			t.nodes = append(t.nodes, top.node)
			if complete = len(stack) == 0; !complete {
				parent := &stack[len(stack)-1]
				parent.children = append(parent.children, child{node: number})
			}
			at++
		default:
			word := rest[:wordLength(rest)]
			if len(stack) == 0 {
				return fail(at, "a tree begins with (, not with %s", shortened(word))
			}
			parent := &stack[len(stack)-1]
			parent.children = append(parent.children, child{node: -1, word: word})
			at += len(word)
		}
	}
	switch {
	case len(stack) > 0:
		top := stack[len(stack)-1]
		return fail(top.at, "the bracket of the node %q is not closed", top.label)
	case !complete:
		return fail(len(text), "there is no tree")
	}
	return t, nil
}

// wordLength returns the length of s up to the next space or bracket.
func wordLength(s string) int {
	if i := strings.IndexFunc(s, func(r rune) bool { return r == '(' || r == ')' || unicode.IsSpace(r) }); i >= 0 {
		return i
	}
	return len(s)
}

// shortened returns s in quotation marks, shortened for messages.
func shortened(s string) string {
	const limit = 40
	if r := []rune(s); len(r) > limit {
		s = string(r[:limit]) + "…"
	}
	return strconv.Quote(s)
}
