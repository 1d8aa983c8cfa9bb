// Package modelfile saves fitted models and loads them again.
//
// A file is a safetensors file (the public format of Hugging Face: 8 bytes of header length, little
// endian; a JSON header; the data), so that every program that reads this format can read the
// arrays:
//
//	import safetensors.numpy
//	coef = safetensors.numpy.load_file("m.safetensors")["coef"]
//
// All arrays are F64 of rank 2, in the order of their names, and the header is
// padded with spaces to a multiple of 8 bytes. The rest of the model is text in
// the header's __metadata__:
//
//	format    "mercer"
//	version   "1", the version number of this layout
//	learner   such as "kernel-ridge"
//	model     the parameters, a JSON object
//	encoder   how a table becomes the model's features, JSON; absent if unknown
//	objects   for texts and trees: kernel, training objects, and the names of the
//	          arrays of points of which only the first two columns are saved, JSON
//	sha256    of everything above and the arrays, in hexadecimal
//
// The checksum is the hash of the other metadata in the order of their keys, then
// of the arrays in the order of their names. Every string is preceded by its
// length, as 8 bytes, little endian; numbers have the same form:
//
//	for each metadatum: key, value
//	for each array: name, "F64", rank, each dimension
//	the data of the file
//
// The same model gives the same bytes. Loading checks everything: sizes are
// compared with the file before memory is allocated, and a truncated, modified or
// foreign file gives a one-line error.
package modelfile
