// Package cuctx makes Mercer work in a CUDA context that a program has created with
// gorgonia.org/cu, on the memory of that context:
//
//	dev, err := cuctx.Open(ctx, backend.Config{})        // ctx is a *cu.Ctx
//	x, err := cuctx.Matrix[float64](dev, ptr, n, d, d)   // ptr is a cu.DevicePtr
//	k, err := dev.F64().New(n, n)
//	dev.F64().Gram(k, kernels.Gaussian{Sigma: 2}, x, x)  // nothing is copied
//	err = dev.Sync()
//
// Without the build tag cuda the package is empty. With it, a build needs cgo, cuda.h of CUDA 11.8
// or newer, and libcuda.so or its stub, because gorgonia.org/cu needs them. Neither this package
// nor gorgonia.org/cu needs cuDNN. But with this tag, gorgonia.org/gorgonia imports
// gorgonia.org/cu/dnn: a program with Gorgonia's graphs also needs cudnn.h and libcudnn. A program
// without a context of gorgonia.org/cu needs neither the tag nor these files. In the default build,
// backend.Open("cuda/0", …) finds a GPU at run time, and the nodes of package gorgonia can use that
// device.
package cuctx
