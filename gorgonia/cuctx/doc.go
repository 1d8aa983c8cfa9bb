// Package cuctx lets Mercer work in a CUDA context that a program has created with
// gorgonia.org/cu, and on the memory in it:
//
//	dev, err := cuctx.Open(ctx, backend.Config{})        // ctx is a *cu.Ctx
//	x, err := cuctx.Matrix[float64](dev, ptr, n, d, d)   // ptr is a cu.DevicePtr
//	k, err := dev.F64().New(n, n)
//	dev.F64().Gram(k, kernels.Gaussian{Sigma: 2}, x, x)  // nothing is copied
//	err = dev.Sync()
//
// Without the build tag cuda the package is empty, because gorgonia.org/cu needs cgo, and the
// headers and the libcuda of CUDA at build time: cuda.h of 11.8 or newer, and libcuda.so or its
// stub. Neither this package nor gorgonia.org/cu needs cuDNN; but gorgonia.org/gorgonia with this
// tag imports gorgonia.org/cu/dnn, and with it cudnn.h and libcudnn, so a program with Gorgonia's
// graphs and this package needs them too. A program without a context of gorgonia.org/cu needs
// neither the tag nor these files: in the default build, backend.Open("cuda/0", …) finds a GPU at
// run time, and the device works for the nodes of package gorgonia.
package cuctx
