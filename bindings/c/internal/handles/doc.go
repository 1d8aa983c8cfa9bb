// Package handles implements the objects behind the handles of libmercer in Go: devices, fitted models and factors
// of K + λI, with the operations of the C interface. Package libmercer only translates between C and Go.
//
// Several threads may use an object at once, and one of them may free it while others use it: its memory is
// released after the last use.
package handles
