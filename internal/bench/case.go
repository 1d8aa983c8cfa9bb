package bench

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Case identifies a measurement by parameters in the order in which reports show them, such as
// routine=gemm, precision=float64, threads=2, n=1024. In JSON it is an object in this order; an
// integer is a JSON number, and any other value is a string.
type Case []Param

// Param is a parameter of a Case.
type Param struct{ Name, Value string }

// Get returns a parameter's value, or "" if the case does not have the parameter.
func (c Case) Get(name string) string {
	for _, p := range c {
		if p.Name == name {
			return p.Value
		}
	}
	return ""
}

// Int returns a parameter as an integer, or 0 if it is not an integer.
func (c Case) Int(name string) int {
	n, _ := strconv.Atoi(c.Get(name))
	return n
}

// Has reports whether c has every parameter of other, with the same value.
func (c Case) Has(other Case) bool {
	return !slices.ContainsFunc(other, func(p Param) bool { return c.Get(p.Name) != p.Value })
}

// Without returns c without one parameter.
func (c Case) Without(name string) Case {
	return slices.DeleteFunc(slices.Clone(c), func(p Param) bool { return p.Name == name })
}

// String returns the case in the form of a Go benchmark's name: routine=gemm/precision=float64/threads=2/n=1024.
func (c Case) String() string {
	parts := make([]string, len(c))
	for i, p := range c {
		parts[i] = p.Name + "=" + p.Value
	}
	return strings.Join(parts, "/")
}

// MarshalJSON keeps the order of the parameters.
func (c Case) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	b.WriteByte('{')
	for i, p := range c {
		if i > 0 {
			b.WriteByte(',')
		}
		name, err := json.Marshal(p.Name)
		if err != nil {
			return nil, err
		}
		value, err := json.Marshal(p.Value)
		if err != nil {
			return nil, err
		}
		if n, err := strconv.Atoi(p.Value); err == nil && strconv.Itoa(n) == p.Value {
			value = []byte(p.Value)
		}
		fmt.Fprintf(&b, "%s:%s", name, value)
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

// UnmarshalJSON decodes the format of MarshalJSON.
func (c *Case) UnmarshalJSON(data []byte) error {
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return fmt.Errorf("bench: case: want an object, got %.20q", data)
	}
	*c = nil
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return err
		}
		value, err := d.Token()
		if err != nil {
			return err
		}
		switch v := value.(type) {
		case string:
			*c = append(*c, Param{name.(string), v})
		case json.Number:
			*c = append(*c, Param{name.(string), v.String()})
		default:
			return fmt.Errorf("bench: case: %v must be a text or a number", name)
		}
	}
	return nil
}
