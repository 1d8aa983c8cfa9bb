package trees

import "strings"

// Parse returns the tree of a text, or an error.
func Parse(text string) (*tree, error) {
	t, err := parse(text)
	if err != nil {
		return nil, err
	}
	return t, nil
}

// Nodes returns the number of nodes, excluding words.
func (t *tree) Nodes() int { return len(t.nodes) }

// String returns the tree in brackets, with one space between children; "" for a tree without nodes.
func (t *tree) String() string {
	if len(t.nodes) == 0 {
		return ""
	}
	var b strings.Builder
	t.write(&b, len(t.nodes)-1)
	return b.String()
}

func (t *tree) write(b *strings.Builder, i int) {
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
