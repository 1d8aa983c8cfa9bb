// Package count formats a number with a noun in the singular or plural.
package count

import (
	"strconv"
	"strings"
)

// Of returns n and a noun, in the plural unless n is 1: "1 cell", "2 cells", "0 classes", "3 entries".
func Of[N ~int | ~int32 | ~int64](n N, word string) string {
	return strconv.FormatInt(int64(n), 10) + " " + Word(n, word)
}

// Word returns only the noun, in the plural unless n is 1.
func Word[N ~int | ~int32 | ~int64](n N, word string) string {
	switch {
	case n == 1:
		return word
	case strings.HasSuffix(word, "s") || strings.HasSuffix(word, "x"):
		return word + "es"
	case strings.HasSuffix(word, "y") && !strings.ContainsRune("aeiou", rune(word[max(len(word)-2, 0)])):
		return word[:len(word)-1] + "ies"
	}
	return word + "s"
}
