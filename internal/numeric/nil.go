package numeric

import "reflect"

// IsNil reports whether v is nil or a nil pointer in an interface.
func IsNil(v any) bool {
	of := reflect.ValueOf(v)
	return !of.IsValid() || of.Kind() == reflect.Pointer && of.IsNil()
}
