// Package texttable aligns the columns of a table for a terminal.
package texttable

import (
	"strings"

	"github.com/rivo/uniseg"

	"github.com/mercer-go/mercer/internal/message"
)

// Format lays rows out in columns, two spaces apart. align has one letter for each
// column: l or r. Widths are those of a terminal, where 核 is two columns wide and a combining
// accent none; unprintable characters are escaped. A row may be shorter than align.
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
