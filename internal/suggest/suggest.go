// Package suggest finds the name that the user of a misspelled name probably meant.
package suggest

import (
	"strings"
	"unicode/utf8"

	"github.com/agnivade/levenshtein"
)

// longest is the maximum size, in bytes, of a text that is compared with names, in quadratic time.
const longest = 100

// Nearest returns the name with the smallest Levenshtein distance to typed, ignoring case. The distance must be less
// than the mean length of the two texts, and at most the larger of 2 and a third of the length of typed. If no name
// is so near, Nearest returns the first name that contains typed if typed has at least three letters, or "".
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
