package driver

// Solver holds cuSOLVER's dense functions and a handle. Matrices are in column-major order.
type Solver struct {
	Call   func(s *Symbol, args ...uintptr) int32
	Path   string
	Failed Failed // decides whether to repeat a failed call; nil means never

	symbols        []Symbol
	handle, params uintptr
}

func (l loader) newSolver(library uintptr, path string, create bool) (*Solver, error) {
	symbols, err := l.bind(library, path, solverTable)
	if err != nil {
		return nil, err
	}
	v := &Solver{Call: l.caller(), Path: path, symbols: symbols}
	if !create {
		return v, nil
	}
	out := cell()
	if err := v.invoke(cusolverCreate, address(&out[0])); err != nil {
		return nil, err
	}
	v.handle = uintptr(out[0])
	if err := v.invoke(cusolverCreateParams, address(&out[1])); err != nil {
		v.invoke(cusolverDestroy, v.handle)
		return nil, err
	}
	v.params = uintptr(out[1])
	return v, nil
}

func (v *Solver) invoke(op int, args ...uintptr) error {
	s := &v.symbols[op]
	return call(func() int32 { return v.Call(s, args...) }, s.Name, solverNames, v.Failed)
}

func (v *Solver) Close() error {
	err := v.invoke(cusolverDestroyParams, v.params)
	if destroyErr := v.invoke(cusolverDestroy, v.handle); err == nil {
		err = destroyErr
	}
	return err
}

func (v *Solver) SetStream(s Stream) error { return v.invoke(cusolverSetStream, v.handle, uintptr(s)) }

// dataType returns the cudaDataType of E.
func dataType[E Float]() uintptr { return uintptr(pick[E](0, 1)) }

// PotrfWork returns the numbers of bytes that Potrf needs on the device and on the host.
func PotrfWork[E Float](v *Solver, fill Fill, n int, A DevicePtr, lda int) (device, host int64, err error) {
	out := cell()
	err = v.invoke(cusolverXpotrfBufferSize, v.handle, v.params, uintptr(fill), uintptr(n), dataType[E](), uintptr(A), uintptr(lda), dataType[E](),
		address(&out[0]), address(&out[1]))
	return int64(out[0]), int64(out[1]), err
}

// Potrf queues the Cholesky factorization of a triangle in place; the other triangle does not
// change. It sets info, an int on the device, to 0 on success, to i + 1 if pivot i is the first
// pivot ≤ 0, or to −k if argument number k is invalid. cuSOLVER does not detect NaN or infinite
// pivots, and continues with NaN after an invalid pivot. The workspace host is page-locked memory.
func Potrf[E Float](v *Solver, fill Fill, n int, A DevicePtr, lda int, work DevicePtr, bytes int64, host []byte, info DevicePtr) error {
	var hostAt uintptr
	if len(host) > 0 {
		hostAt = address(&host[0])
	}
	return v.invoke(cusolverXpotrf, v.handle, v.params, uintptr(fill), uintptr(n), dataType[E](), uintptr(A), uintptr(lda), dataType[E](),
		uintptr(work), uintptr(bytes), hostAt, uintptr(len(host)), uintptr(info))
}
