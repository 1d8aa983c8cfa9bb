// Package suggest finds the name that the user of a misspelled name probably meant.
package suggest

import (
	"strings"
	"unicode/utf8"

	"github.com/agnivade/levenshtein"
)

// longest is the maximum size, in bytes, of a text that is compared with names, in quadratic time.
const longest = 100

// Nearest returns the name with the smallest Levenshtein distance to typed, ignoring case. The distance must be at
// most 2 or a third of the letters of typed, and less than the mean length of name and typed. If there is no such name
// and typed has at least three letters, Nearest returns the first name that contains typed. Otherwise it returns "".
func Nearest(typed string, names []string) string {
	if len(typed) > longest {
		return ""
	}
	typed = strings.ToLower(typed)
	letters := utf8.RuneCountInString(typed)
	best, distance := "", max(2, letters/3)+1
	for _, name := range names {
		if len(name) > longest {
			continue
		}
		d := levenshtein.ComputeDistance(typed, strings.ToLower(name))
		if d < distance && 2*d < letters+utf8.RuneCountInString(name) {
			best, distance = name, d
		}
	}
	for _, name := range names {
		if best == "" && letters > 2 && strings.Contains(strings.ToLower(name), typed) {
			best = name
		}
	}
	return best
}
