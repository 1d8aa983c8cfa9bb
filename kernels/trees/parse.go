package trees

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
)

// tree is the tree that a text describes. Its nodes are in postorder: children precede their
// parent, and the root is last.
type tree struct{ nodes []node }

type node struct {
	label    string
	children []child
}

// child is either the index of a node or a word.
type child struct {
	node int32 // index of the node; −1 for a word
	word string
}

// maxDepth bounds the nesting of brackets, so that no text can exhaust the stack of a recursive traversal.
const maxDepth = 10_000

// parseError is an error in a tree's text, with the position of the error.
type parseError struct {
	tree   int // number of the tree, from 1; 0 if there is only one tree
	column int // position in characters, from 1
	detail string
}

func (e *parseError) Error() string {
	if e.tree > 0 {
		return fmt.Sprintf("trees: tree %d, character %d: %s", e.tree, e.column, e.detail)
	}
	return fmt.Sprintf("trees: character %d: %s", e.column, e.detail)
}

// parse reads a tree from its text.
func parse(text string) (*tree, *parseError) {
	fail := func(offset int, format string, args ...any) (*tree, *parseError) {
		return nil, &parseError{column: len([]rune(text[:offset])) + 1, detail: fmt.Sprintf(format, args...)}
	}
	type open struct {
		node
		offset int // byte offset of the node's bracket
	}
	var stack []open
	t := &tree{}
	complete := false
	for offset := 0; offset < len(text); {
		remaining := text[offset:]
		if trimmed := strings.TrimLeftFunc(remaining, unicode.IsSpace); len(trimmed) < len(remaining) {
			offset += len(remaining) - len(trimmed)
			continue
		}
		if complete {
			return fail(offset, "the tree is complete, but %s follows", shortened(remaining))
		}
		switch remaining[0] {
		case '(':
			if len(stack) == maxDepth {
				return fail(offset, "more than %d brackets are open", maxDepth)
			}
			// The label follows, possibly after spaces; a bracket means that there is no label.
			trimmed := strings.TrimLeftFunc(remaining[1:], unicode.IsSpace)
			label := trimmed[:wordLength(trimmed)]
			stack = append(stack, open{node{label: label}, offset})
			offset += len(remaining) - len(trimmed) + len(label)
		case ')':
			if len(stack) == 0 {
				return fail(offset, "a bracket is closed that was not opened")
			}
			top := stack[len(stack)-1]
			stack = stack[:len(stack)-1]
			if len(top.children) == 0 {
				return fail(top.offset, "the node %q has no children", top.label)
			}
			number := int32(len(t.nodes))
			t.nodes = append(t.nodes, top.node)
			if complete = len(stack) == 0; !complete {
				parent := &stack[len(stack)-1]
				parent.children = append(parent.children, child{node: number})
			}
			offset++
		default:
			word := remaining[:wordLength(remaining)]
			if len(stack) == 0 {
				return fail(offset, "a tree begins with (, not with %s", shortened(word))
			}
			parent := &stack[len(stack)-1]
			parent.children = append(parent.children, child{node: -1, word: word})
			offset += len(word)
		}
	}
	switch {
	case len(stack) > 0:
		top := stack[len(stack)-1]
		return fail(top.offset, "the bracket of the node %q is not closed", top.label)
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
