// Package handles is what the handles of libmercer hold: devices, fitted models
// and factors of K + λI, with what the C interface does to them, in Go. The
// border itself, package libmercer, only translates; so all that can be tested
// without a C compiler is tested here.
//
// What is held may be used by several threads at once, and freed by one of them
// while others use it: it goes when the last use is over.
package handles
