package handles

import (
	"errors"
	"fmt"
	"strings"

	"github.com/mercer-go/mercer/internal/message"
	"github.com/mercer-go/mercer/learners"
)

// Names maps the library's parameter names to the caller's parameter names, for errors and
// warnings; nil means the library's names.
type Names map[string]string

// ParseNames returns the names in a list of texts of the form "parameter=name".
func ParseNames(list []string) Names {
	if list == nil {
		return nil
	}
	names := Names{}
	for _, text := range list {
		parameter, name, _ := strings.Cut(text, "=")
		names[parameter] = name
	}
	return names
}

// Text returns the text of an error with the caller's names. It omits advice about
// parameters for which the caller has no name.
func (n Names) Text(err error) string {
	var wrong *learners.ParameterError
	if errors.As(err, &wrong) && n[wrong.Parameter] != "" {
		rule := wrong.Rule
		if w := wrong.When; w != nil {
			named := *w
			if n[w.Parameter] != "" {
				named.Parameter = n[w.Parameter]
			}
			rule = "works " + named.String()
		}
		return fmt.Sprintf("learners: %s: %s: %s", wrong.Learner, n[wrong.Parameter], rule)
	}
	return message.Text(err, n.of)
}

// of returns the caller's name or phrase for a parameter that the library's advice names.
func (n Names) of(parameter string) string {
	if n == nil {
		return message.Plain(parameter)
	}
	name, value, isValue := strings.Cut(parameter, "=")
	verb, after := "", ""
	switch {
	case parameter == "penalty":
		verb, name = "lower ", "C"
	case name == "penalty":
		verb, name, isValue = "raise ", value, false
	case name == "fitted":
		name, after, isValue = value, " of the fit", false
	}
	own := n[name]
	switch {
	case own == "":
		return ""
	case isValue:
		return own + "=" + value
	}
	return verb + own + after
}
