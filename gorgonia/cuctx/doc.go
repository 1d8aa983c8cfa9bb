// Package cuctx makes Mercer work in a CUDA context that a program has created with gorgonia.org/cu, on the memory
// of that context:
//
//	dev, err := cuctx.Open(ctx, backend.Config{})        // ctx is a *cu.Ctx
//	x, err := cuctx.Matrix[float64](dev, ptr, n, d, d)   // ptr is a cu.DevicePtr
//	k, err := dev.F64().New(n, n)
//	dev.F64().Gram(k, kernels.Gaussian{Sigma: 2}, x, x)  // nothing is copied
//	err = dev.Sync()
//
// Without the build tag cuda the package is empty. A build with the tag needs cgo, cuda.h of CUDA 11.8 or newer,
// and libcuda.so or its stub, because gorgonia.org/cu needs them. Packages cuctx and cu do not need cuDNN. But with
// the tag, gorgonia.org/gorgonia imports gorgonia.org/cu/dnn: a program with Gorgonia's graphs also needs cudnn.h
// and libcudnn. Without a context of gorgonia.org/cu, no tag is needed: in the default build,
// backend.Open("cuda/0", …) finds a GPU at run time, and the nodes of package gorgonia can use that device.
package cuctx
