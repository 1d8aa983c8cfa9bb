package kernels

import (
	"slices"
	"strings"
)

// ParseNamed parses a kernel of another package from text of the form name( parameter = value, … ).
// The argument list describes the known kernels; their parameters must be single numbers. The
// results are the kernel's description and the parameter values by name. An error is a *ParseError.
func ParseNamed(text string, list []Description) (d Description, values map[string]float64, err error) {
	p := &parser{text: text}
	err = p.run(func() {
		var canonical, withAliases []string
		for _, d := range list {
			canonical = append(canonical, d.Name)
			withAliases = append(append(withAliases, d.Name), d.Aliases...)
		}
		p.advance()
		offset, typed := p.next.offset, p.next.text
		if p.next.kind != nameToken {
			p.fail(offset, "a kernel is needed; the kernels are %s", strings.Join(canonical, ", "))
		}
		i := slices.IndexFunc(list, func(d Description) bool {
			name := strings.ToLower(typed)
			return d.Name == name || slices.Contains(d.Aliases, name)
		})
		if i < 0 {
			p.fail(offset, "unknown kernel %s%s; the kernels are %s", p.next, nearest(typed, withAliases), strings.Join(canonical, ", "))
		}
		d = list[i]
		p.advance()
		values = map[string]float64{}
		args := p.arguments(&d, offset)
		for _, q := range d.Parameters {
			if q.InsteadOf == "" {
				values[q.Name], args = args[0].number(), args[1:]
			}
		}
		if p.next.kind != endToken {
			p.unexpected("the end")
		}
	})
	return d, values, err
}
