//go:build cuda

package cuctx_test

import (
	"math/rand/v2"
	"runtime"
	"testing"
	"unsafe"

	"gorgonia.org/cu"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/gorgonia/cuctx"
	"github.com/mercer-go/mercer/kernels"
)

// context returns the primary CUDA context of device 0, which runs on a thread of its own.
func context(t *testing.T) *cu.Ctx {
	t.Helper()
	n, err := cu.NumDevices()
	if err != nil || n == 0 {
		t.Skipf("there is no GPU: %v", err)
	}
	dev, err := cu.GetDevice(0)
	if err != nil {
		t.Fatal(err)
	}
	primary, err := dev.RetainPrimaryCtx()
	if err != nil {
		t.Fatal(err)
	}
	ctx := cu.CtxFromCUContext(dev, primary, cu.SchedAuto)
	ready := make(chan error)
	go ctx.Run(ready)
	if err := <-ready; err != nil {
		t.Fatal(err)
	}
	return ctx
}

// TestSharedMemory checks that Mercer computes with data that cu has uploaded, and that cu can read Mercer's results.
func TestSharedMemory(t *testing.T) {
	ctx := context(t)
	dev, err := cuctx.Open(ctx, backend.Config{})
	if err != nil {
		t.Fatal(err)
	}
	const n, d = 30, 4
	r := rand.New(rand.NewPCG(5, 6))
	x, k := make([]float64, n*d), make([]float64, n*n)
	for i := range x {
		x[i] = r.NormFloat64()
	}
	px, err := ctx.MemAlloc(int64(8 * len(x)))
	if err != nil {
		t.Fatal(err)
	}
	pk, err := ctx.MemAlloc(int64(8 * len(k)))
	if err != nil {
		t.Fatal(err)
	}
	up := func(p cu.DevicePtr, data []float64) {
		if err := ctx.Do(func() error { return cu.MemcpyHtoD(p, unsafe.Pointer(&data[0]), int64(8*len(data))) }); err != nil {
			t.Fatal(err)
		}
	}
	up(px, x)
	up(pk, k)
	mx, err := cuctx.Matrix[float64](dev, px, n, d, d)
	if err != nil {
		t.Fatal(err)
	}
	mk, err := cuctx.Matrix[float64](dev, pk, n, n, n)
	if err != nil {
		t.Fatal(err)
	}
	gaussian := kernels.Gaussian{Sigma: 1.5}
	dev.F64().Gram(mk, gaussian, mx, mx)
	if err := dev.Sync(); err != nil {
		t.Fatal(err)
	}
	if err := ctx.Do(func() error { return cu.MemcpyDtoH(unsafe.Pointer(&k[0]), pk, int64(8*len(k))) }); err != nil {
		t.Fatal(err)
	}
	for i := range n {
		for j := range i + 1 {
			want := kernels.Eval(gaussian, x[i*d:(i+1)*d], x[j*d:(j+1)*d])
			// The squared distance is a sum of d terms; exp is correct to some units in the last place.
			if diff := k[i*n+j] - want; diff > 256*0x1p-53 || diff < -256*0x1p-53 {
				t.Fatalf("seed 5, 6: element %d, %d is %v, want %v", i, j, k[i*n+j], want)
			}
		}
	}
	if err := dev.Close(); err != nil {
		t.Error(err)
	}
	ctx.MemFree(px)
	ctx.MemFree(pk)
	if err := ctx.Error(); err != nil {
		t.Errorf("the context after the device was closed: %v", err)
	}
	runtime.KeepAlive(ctx)
}

func TestOpenNil(t *testing.T) {
	if _, err := cuctx.Open(nil, backend.Config{}); err == nil {
		t.Error("no error")
	}
}
