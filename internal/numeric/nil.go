package numeric

import "reflect"

// IsNil reports whether v is nil or contains a nil pointer.
func IsNil(v any) bool {
	value := reflect.ValueOf(v)
	return !value.IsValid() || value.Kind() == reflect.Pointer && value.IsNil()
}
