package handles

import (
	"errors"
	"fmt"
	"strings"

	"github.com/mercer-go/mercer/internal/message"
	"github.com/mercer-go/mercer/learners"
)

// Names are a caller's names for the parameters of the library in errors and warnings; nil:
// the library's own.
type Names map[string]string

// ParseNames returns the names of a list of "parameter=name".
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

// Text is an error with the caller's names. Advice with a parameter that the caller has no
// name for is left out.
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

// of is the caller's name for a parameter of the library's advice, or the phrase with it.
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
