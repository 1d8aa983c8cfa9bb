// Package onnx writes fitted models as ONNX files, which other programs evaluate without Mercer.
//
// The graph has one input, "x", whose rows are samples, and only operators of ONNX's standard domain, opset 13.
// Distances are computed from differences of coordinates. In float64 the predictions equal those of package
// learners up to rounding.
package onnx
