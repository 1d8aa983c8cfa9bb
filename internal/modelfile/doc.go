// Package modelfile saves fitted models and loads them again.
//
// A file has the public format safetensors of Hugging Face: 8 bytes with the length of the header, little endian;
// a JSON header; the data. Other programs can read the arrays:
//
//	import safetensors.numpy
//	coef = safetensors.numpy.load_file("m.safetensors")["coef"]
//
// All arrays are F64 of rank 2, in the order of their names, and the header is padded with spaces to a multiple of
// 8 bytes. The rest of the model is text in the header's __metadata__:
//
//	format    "mercer"
//	version   "1", the version number of this layout
//	learner   such as "kernel-ridge"
//	model     the parameters, a JSON object
//	encoder   how a table becomes the model's features, JSON; absent if unknown
//	objects   for texts and trees, JSON: kernel, training objects, and names of arrays
//	          of points; the file has only the first two columns of these arrays
//	sha256    checksum of everything above and the arrays, in hexadecimal
//
// The checksum is the hash of the other metadata in the order of their keys, then of the arrays in the order of
// their names. Every string is preceded by its length. Lengths and other numbers take 8 bytes, little endian:
//
//	for each metadatum: key, value
//	for each array: name, "F64", rank, each dimension
//	the data of the file
//
// The same model gives the same bytes. Loading compares sizes with the size of the file before it allocates
// memory. If a file is truncated, modified or written by another program, the error has one line.
package modelfile
