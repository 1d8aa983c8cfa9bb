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
	var paramErr *learners.ParameterError
	if errors.As(err, &paramErr) && n[paramErr.Parameter] != "" {
		rule := paramErr.Rule
		if w := paramErr.When; w != nil {
			when := *w
			if n[w.Parameter] != "" {
				when.Parameter = n[w.Parameter]
			}
			rule = "works " + when.String()
		}
		return fmt.Sprintf("learners: %s: %s: %s", paramErr.Learner, n[paramErr.Parameter], rule)
	}
	return message.Text(err, n.phrase)
}

// phrase returns the caller's name or phrase for a parameter that the library's advice names.
func (n Names) phrase(parameter string) string {
	if n == nil {
		return message.Plain(parameter)
	}
	name, value, isValue := strings.Cut(parameter, "=")
	verb, suffix := "", ""
	switch {
	case parameter == "penalty":
		verb, name = "lower ", "C"
	case name == "penalty":
		verb, name, isValue = "raise ", value, false
	case name == "fitted":
		name, suffix, isValue = value, " of the fit", false
	}
	callerName := n[name]
	switch {
	case callerName == "":
		return ""
	case isValue:
		return callerName + "=" + value
	}
	return verb + callerName + suffix
}
