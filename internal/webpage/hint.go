package webpage

import (
	"fmt"
	"html"
	"strings"
)

// Hint is a text for a point of a picture. The page shows it when the pointer is at the point.
type Hint struct {
	X, Y   float64 // the point, in the units of the picture's viewBox
	Text   string
	Series string // the series that the point belongs to, or ""
}

// WithHints returns the SVG picture with the hints, each as the title of an invisible circle.
func WithHints(svg string, hints []Hint) string {
	var b strings.Builder
	for _, h := range hints {
		b.WriteString(`<circle class="hint"`)
		if h.Series != "" {
			b.WriteString(` data-series="` + html.EscapeString(h.Series) + `"`)
		}
		fmt.Fprintf(&b, " cx=\"%.4g\" cy=\"%.4g\" r=\"4\"><title>%s</title></circle>\n", h.X, h.Y, html.EscapeString(h.Text))
	}
	return strings.Replace(svg, "</svg>", b.String()+"</svg>", 1)
}
