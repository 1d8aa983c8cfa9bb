package bench

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/mercer-go/mercer/internal/texttable"
)

// Text returns p for a terminal.
func (p *Report) Text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n\n", p.Answer)
	for _, line := range p.Facts {
		fmt.Fprintln(&b, line)
	}
	for _, t := range p.Tables {
		fmt.Fprintf(&b, "\n%s\n%s", t.Title, t.text())
		for _, note := range t.Notes {
			fmt.Fprintf(&b, "  %s\n", note)
		}
	}
	return b.String()
}

// text returns t as text with aligned columns and the notes in brackets.
func (t *Table) text() string {
	var align strings.Builder
	rows := make([][]string, len(t.Rows)+1)
	align.WriteByte('l')
	for i := range rows {
		rows[i] = []string{""} // an empty first column indents the table
	}
	for j, head := range t.Head {
		alignment, width := byte('r'), 0
		for _, row := range t.Rows {
			if row[j].Words() || row[j].Note != "" {
				alignment = 'l'
			}
			width = max(width, utf8.RuneCountInString(row[j].Text))
		}
		align.WriteByte(alignment)
		rows[0] = append(rows[0], head)
		for i, row := range t.Rows {
			text := row[j].Text
			if !row[j].Words() && alignment == 'l' {
				text = strings.Repeat(" ", width-utf8.RuneCountInString(text)) + text
			}
			if row[j].Note != "" {
				text += " (" + row[j].Note + ")"
			}
			rows[i+1] = append(rows[i+1], text)
		}
	}
	if strings.Join(rows[0], "") == "" {
		rows = rows[1:]
	}
	return texttable.Format(align.String(), rows)
}

// Markdown returns p as a section of a page.
func (p *Report) Markdown() string {
	var b strings.Builder
	fmt.Fprintf(&b, "## %s\n\n%s\n\n%s.\n", p.Title, p.Answer, strings.Join(p.Facts, "; "))
	for _, t := range p.Tables {
		fmt.Fprintf(&b, "\n### %s\n\n| %s |\n|---%s|\n", t.Title, strings.Join(t.Head, " | "), strings.Repeat("|---:", len(t.Head)-1))
		for _, row := range t.Rows {
			for _, field := range row {
				b.WriteString("| " + strings.ReplaceAll(field.Text, "|", `\|`) + " ")
				if field.Note != "" {
					b.WriteString("(" + field.Note + ") ")
				}
			}
			b.WriteString("|\n")
		}
		for _, note := range t.Notes {
			fmt.Fprintf(&b, "\n%s\n", note)
		}
	}
	return b.String()
}
