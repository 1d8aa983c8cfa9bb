// Package strings holds kernels over strings, which are taken as sequences of
// Unicode code points; bytes that are no valid UTF-8 are each U+FFFD.
//
// Importing it registers "subsequence" and "spectrum" with package objects.
package strings
