// Package suggest finds the name that was probably meant by a misspelled one.
package suggest

import (
	"strings"
	"unicode/utf8"

	"github.com/agnivade/levenshtein"
)

// longest is the number of bytes from which on nothing is compared: it is no
// misspelling, and the distance takes quadratic time.
const longest = 100

// Nearest returns the one of names with the smallest Levenshtein distance to typed,
// letters of either case being equal, or "" where that is more than two and more than
// a third of the letters, or as much as the mean length. Where none is near, it is
// the first name that contains what was typed, of at least three letters.
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
