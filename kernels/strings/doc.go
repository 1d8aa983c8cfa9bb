// Package strings implements kernels over strings, treated as sequences of Unicode code points.
// Each byte of invalid UTF-8 is read as U+FFFD.
//
// Importing this package registers "subsequence" and "spectrum" with package objects.
package strings
