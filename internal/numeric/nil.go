package numeric

import "reflect"

// IsNil reports whether v is nil or contains a nil pointer.
func IsNil(v any) bool {
	of := reflect.ValueOf(v)
	return !of.IsValid() || of.Kind() == reflect.Pointer && of.IsNil()
}
