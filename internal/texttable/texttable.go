// Package texttable aligns the columns of a table for a terminal.
package texttable

import (
	"strings"

	"github.com/rivo/uniseg"

	"github.com/mercer-go/mercer/internal/message"
)

// Format returns rows as a text with aligned columns, two spaces apart. align has one letter for each column: l
// aligns the column to the left and r to the right. Widths are numbers of terminal cells: 核 has the width 2.
// Unprintable characters are escaped. A row may be shorter than align.
func Format(align string, rows [][]string) string {
	cells, widths := make([][]string, len(rows)), make([]int, len(align))
	for i, row := range rows {
		for j, cell := range row {
			cells[i] = append(cells[i], message.Printable(cell))
			widths[j] = max(widths[j], uniseg.StringWidth(cells[i][j]))
		}
	}
	var b, line strings.Builder
	for _, row := range cells {
		line.Reset()
		for j, cell := range row {
			if j > 0 {
				line.WriteString("  ")
			}
			pad := strings.Repeat(" ", widths[j]-uniseg.StringWidth(cell))
			if align[j] == 'r' {
				line.WriteString(pad + cell)
			} else {
				line.WriteString(cell + pad)
			}
		}
		b.WriteString(strings.TrimRight(line.String(), " ") + "\n")
	}
	return b.String()
}
