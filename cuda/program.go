package cuda

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/cuda/internal/driver"
	"github.com/mercer-go/mercer/kernels"
)

// These constants equal the limits of struct Program in internal/ptx/common.cuh.
const (
	maxStats = 16
	maxCode  = 96
	maxDepth = 8

	statBytes    = 40
	instrBytes   = 24
	headerBytes  = 40
	programBytes = headerBytes + maxStats*statBytes + maxCode*instrBytes
)

// These constants equal the forms of struct Program.
const (
	general = iota
	identity
	exponential
	matern
	rational
)

// program is a kernel encoded for the device functions.
type program[T backend.Float] struct {
	q            *queue[T]
	compiled     *kernels.Program
	bytes        []byte
	form         int
	vectorPrefix string // prefix of the names of the specialized functions for K v and a small number of features
	memory       []driver.DevicePtr
}

// program returns the program of a kernel for the points of X and Z.
func (q *queue[T]) program(k kernels.Kernel, x, z *matrix[T]) (p *program[T], err error) {
	p = &program[T]{q: q, compiled: kernels.Compile(k), bytes: make([]byte, programBytes)}
	defer func() {
		if err != nil {
			p.free()
		}
	}()
	if len(p.compiled.Stats) > maxStats || len(p.compiled.Code) > maxCode || p.compiled.Depth > maxDepth {
		return p, fmt.Errorf("the kernel %v is too long: it has %d statistics, %d operations and a stack of %d; the limits are %d, %d and %d: use the device cpu",
			k, len(p.compiled.Stats), len(p.compiled.Code), p.compiled.Depth, maxStats, maxCode, maxDepth)
	}
	p.setForm(k)
	b := binary.LittleEndian
	b.PutUint32(p.bytes[0:], uint32(len(p.compiled.Stats)))
	b.PutUint32(p.bytes[4:], uint32(len(p.compiled.Code)))
	b.PutUint32(p.bytes[8:], uint32(p.form))
	for i, s := range p.compiled.Stats {
		if err := p.stat(p.bytes[headerBytes+i*statBytes:], s, x, z); err != nil {
			return p, err
		}
	}
	for i, in := range p.compiled.Code {
		instr := p.bytes[headerBytes+maxStats*statBytes+i*instrBytes:]
		b.PutUint32(instr, uint32(in.Op))
		b.PutUint32(instr[4:], uint32(int32(in.Arg)))
		b.PutUint64(instr[8:], math.Float64bits(inRange[T](in.A)))
		b.PutUint64(instr[16:], math.Float64bits(in.B))
	}
	return p, nil
}

// inRange clamps v to the finite range of T, so that the product of a kernel's scale with 0 is 0.
func inRange[T backend.Float](v float64) float64 {
	if sizeOf[T]() == 4 {
		return max(-math.MaxFloat32, min(v, math.MaxFloat32))
	}
	return v
}

// setForm sets the form of a program for which there are device functions that do not interpret its code.
func (p *program[T]) setForm(k kernels.Kernel) {
	var a, b, c float64
	code := p.compiled.Code
	m, isMatern := k.(kernels.Matern)
	switch {
	case len(p.compiled.Stats) != 1:
		return
	case len(code) == 1 && code[0].Op == kernels.Load:
		p.form = identity
	case len(code) == 3 && code[1].Op == kernels.Affine && code[1].B == 0 && code[2].Op == kernels.Exp:
		p.form, a = exponential, code[1].A
		switch p.compiled.Stats[0].Kind {
		case kernels.SqDist:
			p.vectorPrefix = "gauss"
		case kernels.L1:
			p.vectorPrefix = "laplace"
		}
	case isMatern:
		p.form, p.vectorPrefix, a = matern, "matern12", math.Sqrt(2*m.Nu)/m.Sigma
		if m.Nu > 0.5 {
			p.vectorPrefix, b = "matern32", 1
		}
		if m.Nu > 1.5 {
			p.vectorPrefix, c = "matern52", 1.0/3
		}
	case len(code) == 3 && code[1].Op == kernels.Affine && code[1].A >= 0 && code[1].B == 1 && code[2].Op == kernels.Pow && p.compiled.Stats[0].Kind == kernels.SqDist:
		p.form, p.vectorPrefix, a, b = rational, "rational", code[1].A, code[2].A
	}
	if p.form == exponential {
		binary.LittleEndian.PutUint32(p.bytes[12:], math.Float32bits(float32(inRange[float32](a*math.Log2E))))
	}
	for i, v := range []float64{a, b, c} {
		binary.LittleEndian.PutUint64(p.bytes[16+8*i:], math.Float64bits(inRange[T](v)))
	}
}

// stat writes s to dst, encoded as a struct Stat.
func (p *program[T]) stat(dst []byte, s kernels.Stat, x, z *matrix[T]) error {
	b := binary.LittleEndian
	b.PutUint32(dst, uint32(s.Kind))
	b.PutUint32(dst[4:], uint32(len(s.Freqs)))
	putPtr := func(offset int, ptr driver.DevicePtr) { b.PutUint64(dst[offset:], uint64(ptr)) }
	if s.Scale != nil {
		if s.Kind > kernels.L1 {
			return fmt.Errorf("a GPU cannot evaluate chi2, cosine, sinc and similar kernels on only some of the columns: use the device cpu")
		}
		scale := make([]T, x.cols)
		for i := range scale {
			scale[i] = T(s.ScaleAt(i))
		}
		ptr, err := p.upload(bytesOf(scale))
		if err != nil {
			return err
		}
		putPtr(8, ptr)
	}
	if s.Freqs != nil {
		ptr, err := p.upload(bytesOf(s.Freqs))
		if err != nil {
			return err
		}
		putPtr(16, ptr)
	}
	switch s.Kind {
	case kernels.SelfX, kernels.RootX:
		ptr, err := p.evalSelf(s, x)
		if err != nil {
			return err
		}
		putPtr(24, ptr)
	case kernels.SelfZ, kernels.RootZ:
		ptr, err := p.evalSelf(s, z)
		if err != nil {
			return err
		}
		putPtr(32, ptr)
	}
	return nil
}

// allocate returns device memory that the method free will release.
func (p *program[T]) allocate(bytes int) (driver.DevicePtr, error) {
	ptr, err := p.q.engine.device.alloc(int64(max(bytes, 1)))
	if err == nil {
		p.memory = append(p.memory, ptr)
	}
	return ptr, err
}

// upload copies bytes to new memory on the device.
func (p *program[T]) upload(v []byte) (driver.DevicePtr, error) {
	ptr, err := p.allocate(len(v))
	if err != nil {
		return 0, err
	}
	return ptr, p.q.engine.device.copyToDevice(ptr, v)
}

// evalSelf computes k(x, x) for the kernel s.Of and each row of x, or 1/√k(x, x) if s is RootX or RootZ.
func (p *program[T]) evalSelf(s kernels.Stat, x *matrix[T]) (driver.DevicePtr, error) {
	inner, err := p.q.program(s.Of, x, x)
	if err != nil {
		return 0, err
	}
	p.memory = append(p.memory, inner.memory...)
	ptr, err := p.allocate(x.rows * sizeOf[T]())
	if err != nil || x.rows == 0 {
		return ptr, err
	}
	root := 0
	if s.Kind == kernels.RootX || s.Kind == kernels.RootZ {
		root = 1
	}
	p.q.engine.device.args.Reset().Int(x.rows).Int(x.cols).Ptr(x.ptr).Long(x.stride).Ptr(ptr).Int(root).Bytes(inner.bytes)
	return ptr, p.q.engine.launch("self", line(x.rows))
}

// shifted returns the program for the rows of X from row i on and the rows of Z from row j on.
func (p *program[T]) shifted(i, j int) []byte {
	if i == 0 && j == 0 {
		return p.bytes
	}
	b := binary.LittleEndian
	out := append([]byte(nil), p.bytes...)
	for s := range p.compiled.Stats {
		for offset, first := range map[int]int{24: i, 32: j} {
			field := out[headerBytes+s*statBytes+offset:]
			if ptr := b.Uint64(field); ptr != 0 {
				b.PutUint64(field, ptr+uint64(first*sizeOf[T]()))
			}
		}
	}
	return out
}

// free waits for the work that uses the program's memory, and releases it.
func (p *program[T]) free() error {
	if len(p.memory) == 0 {
		return nil
	}
	d := p.q.engine.device
	err := d.api.Wait(d.stream)
	for _, ptr := range p.memory {
		if e := d.release(ptr); err == nil {
			err = e
		}
	}
	p.memory = nil
	return err
}
