package backend

import (
	"context"
	"fmt"

	"github.com/mercer-go/mercer/host"
	"github.com/mercer-go/mercer/kernels"
)

// Float is the element type of a matrix.
type Float = host.Float

// Host is a row-major matrix in Go memory: element (i, j) is Data[i*Stride+j].
type Host[T Float] = host.Matrix[T]

// NewHost returns a rows × cols matrix of zeros without padding.
func NewHost[T Float](rows, cols int) Host[T] { return host.New[T](rows, cols) }

// HostMemory returns the number of bytes that this process may still allocate, and false if it is not known.
func HostMemory() (int64, bool) { return host.Memory() }

// Matrix is a rows × cols matrix in the memory of the device that made it.
type Matrix[T Float] interface {
	Dims() (rows, cols int)
	// View returns the rows × cols part whose first element is (i, j). The view shares memory with the matrix and
	// must not be used after the matrix is freed.
	View(i, j, rows, cols int) Matrix[T]
	// Free releases the memory of the matrix. On a view it does nothing.
	Free()
}

// Trans specifies whether an operation uses a matrix operand as stored or transposed.
type Trans uint8

const (
	NoTrans Trans = iota
	Transpose
)

// Uplo names the triangle of a square matrix that an operation uses. The other triangle is neither read nor written.
type Uplo uint8

const (
	Lower Uplo = iota
	Upper
)

// Side specifies whether the triangular or symmetric matrix is on the left or on the right of B.
type Side uint8

const (
	Left Side = iota
	Right
)

// Info describes an open device.
type Info struct {
	Device      string // name of the device for Open, such as "cpu/avx512"
	Processor   string // product name of the processor, if known
	Instruction string // instruction set or compute capability in use
	Threads     int    // number of workers; 0 for a GPU and other devices without workers
	Memory      int64  // maximum number of bytes of all matrices together
	// Reproducible reports whether results have the same bits on every processor; see Config.
	Reproducible bool
	Libraries    string // libraries of other vendors in use; "" if there are none
	Missing      string // missing libraries, each with its purpose and the folders searched; "" if none is missing
}

// Device is one processor and its memory. Its methods may be called from several goroutines.
type Device interface {
	Info() Info
	F32() Backend[float32]
	F64() Backend[float64]
	// Narrow queues dst ← src, rounded to nearest; Widen queues dst ← src, exactly. The shapes must be equal.
	Narrow(dst Matrix[float32], src Matrix[float64])
	Widen(dst Matrix[float64], src Matrix[float32])
	// InUse returns the number of bytes of all matrices that are not freed, and its maximum so far.
	InUse() (inUse, peak int64)
	// Sync waits for all queued work and returns the first failure.
	Sync() error
	// Close waits for all work and frees all memory. The device is unusable afterwards.
	Close() error
}

// Backend is an ordered queue of work in one precision. Methods that wait, according to their comments, return when
// their result is ready, or with an error. The other methods only queue work. If queued work fails, the next method
// that waits returns the first failure, once.
//
// Outputs must not overlap inputs. Elements outside the named triangle, and memory between the rows of a view, are
// never written. NaN and Inf follow IEEE arithmetic: 0·NaN is NaN, and no term is skipped because a factor is zero,
// except that C is not read if beta is 0. A dimension may be zero. The results do not depend on the number of workers.
type Backend[T Float] interface {
	// With returns a Backend for the work of one caller on the same queue. Once ctx is done, the caller's work
	// stops within about 0.1 s, its outputs are undefined, and the next method that waits returns an error that
	// wraps context.Cause(ctx). If done is not nil, the queue calls it, from one goroutine at a time, with the
	// number of floating-point operations finished since the last call, counted as in package internal/flop.
	With(ctx context.Context, done func(flops float64)) Backend[T]

	// New returns a rows × cols matrix of zeros, or a *MemoryError.
	New(rows, cols int) (Matrix[T], error)
	// Upload copies src to dst and waits for the copy.
	Upload(dst Matrix[T], src Host[T]) error
	// Download copies src to dst and waits for the copy.
	Download(dst Host[T], src Matrix[T]) error
	// Sync waits for the queued work.
	Sync() error

	// Gemm queues C ← α op(A) op(B) + β C with op(A) m × k, op(B) k × n.
	Gemm(tA, tB Trans, alpha T, a, b Matrix[T], beta T, c Matrix[T])
	// Syrk queues C ← α A Aᵀ + β C (NoTrans) or α Aᵀ A + β C (Transpose) on the triangle ul of C.
	Syrk(ul Uplo, t Trans, alpha T, a Matrix[T], beta T, c Matrix[T])
	// Symm queues C ← α A B + β C with a symmetric A. It reads only the triangle ul of A.
	Symm(ul Uplo, alpha T, a, b Matrix[T], beta T, c Matrix[T])
	// Trsm queues B ← α op(A)⁻¹ B (Left) or α B op(A)⁻¹ (Right) for the triangle ul of A. A zero on the diagonal
	// gives Inf or NaN.
	Trsm(s Side, ul Uplo, t Trans, alpha T, a, b Matrix[T])
	// Potrf factors A = L Lᵀ (Lower) or UᵀU (Upper), stores the factor in the triangle ul of A, and waits. If pivot
	// p, from 0, is not a positive finite number, Potrf returns a *PivotError, and the leading p × p part of the
	// factor is valid.
	Potrf(ul Uplo, a Matrix[T]) error

	// AddDiag queues A_ii ← A_ii + d_i for the square matrix A, or A_ii ← A_ii + d_0 if d has length 1. d may be
	// changed after the call.
	AddDiag(d []T, a Matrix[T])
	// ColAxpy queues y_j ← y_j + α_j x_j for each column j. alpha may be changed after the call.
	ColAxpy(alpha []T, x, y Matrix[T])
	// ColDot sets dst_j to x_jᵀ y_j for each column j and waits for the result. x and y may be the same matrix.
	ColDot(dst []T, x, y Matrix[T]) error

	// Gram queues dst_ij ← k(x_i, z_j) for the rows of X, n × d, and Z, m × d. If x and z have the
	// same memory and shape, Gram neither reads nor writes the strict upper triangle of dst, and
	// computes the diagonal k(x_i, x_i) with distances of exactly 0.
	Gram(dst Matrix[T], k kernels.Kernel, x, z Matrix[T])
	// GramMul queues dst ← k(X, Z) V, where V is m × t, without storing k(X, Z).
	GramMul(dst Matrix[T], k kernels.Kernel, x, z, v Matrix[T])
}

// Wrapper is an optional ability of a Backend whose memory is Go memory. Wrap returns a matrix that shares h.Data.
type Wrapper[T Float] interface {
	Wrap(h Host[T]) Matrix[T]
}

// Exponential is an optional ability of a Backend whose memory is Go memory. Exp replaces each element x by e^x,
// within 1 ulp, on the caller's goroutine. Several goroutines may call Exp at the same time.
type Exponential[T Float] interface {
	Exp(x []T)
}

// Searcher is an optional ability of a Backend whose memory is Go memory. PrefixBelow returns the number of
// elements of x before the first that is NaN or ≥ bound. Several goroutines may call PrefixBelow at the same time.
type Searcher[T Float] interface {
	PrefixBelow(x []T, bound T) int
}

// Place returns a matrix on b's device with the elements of h, which must only be read. If b is a
// Wrapper, the matrix shares the memory of h; otherwise it is a copy. The caller frees it.
func Place[T Float](b Backend[T], h Host[T]) (Matrix[T], error) {
	if w, ok := b.(Wrapper[T]); ok {
		return w.Wrap(h), nil
	}
	return Copy(b, h)
}

// Copy returns a matrix on b's device with a copy of h. The caller frees it.
func Copy[T Float](b Backend[T], h Host[T]) (Matrix[T], error) {
	m, err := b.New(h.Rows, h.Cols)
	if err != nil {
		return nil, err
	}
	if err := b.Upload(m, h); err != nil {
		m.Free()
		return nil, err
	}
	return m, nil
}

func (t Trans) String() string { return name(int(t), "NoTrans", "Transpose") }
func (u Uplo) String() string  { return name(int(u), "Lower", "Upper") }
func (s Side) String() string  { return name(int(s), "Left", "Right") }

func name(i int, names ...string) string {
	if i < len(names) {
		return names[i]
	}
	return fmt.Sprintf("invalid(%d)", i)
}

// Packed is a symmetric matrix, or its Cholesky factor L, in the memory of the device that made it. It takes half
// the memory of a Matrix of the same order.
type Packed[T Float] interface {
	// Order returns the number of rows, which is also the number of columns.
	Order() int
	// Leading returns the leading n × n part, which shares memory with the matrix: see Matrix.View.
	Leading(n int) Packed[T]
	// Free releases the memory of the matrix. On a leading part it does nothing.
	Free()
}

// PackedBackend is a Backend that also has symmetric matrices in packed storage. It is an optional ability, found
// by a type assertion; the Backend that With returns has it, too. The rules of Backend apply to its methods.
type PackedBackend[T Float] interface {
	Backend[T]
	// PackedBytes returns the number of bytes that NewPacked(n) takes: n(n+1)/2 elements and at most 64(n+1)
	// elements of padding, or math.MaxInt64 if the number overflows.
	PackedBytes(n int) int64
	// NewPacked returns a matrix of zeros of order n, or a *MemoryError.
	NewPacked(n int) (Packed[T], error)
	// UploadPacked copies the rows of src to rows first, first+1, … of dst and waits. src is r × (first + r), and
	// is read only from column 0 to the diagonal.
	UploadPacked(dst Packed[T], first int, src Host[T]) error
	// DownloadPacked copies rows first, first+1, … of src to dst, r × (first + r), and waits. It writes only
	// elements from column 0 to the diagonal.
	DownloadPacked(dst Host[T], src Packed[T], first int) error
	// GramPacked queues A ← k(X, X) for the rows of X, n × d, with distances of exactly 0 on the diagonal.
	GramPacked(a Packed[T], k kernels.Kernel, x Matrix[T])
	// AddDiagPacked is AddDiag for a packed matrix.
	AddDiagPacked(d []T, a Packed[T])
	// DiagPacked sets dst_i to A_ii for every i and waits for the result.
	DiagPacked(dst []T, a Packed[T]) error
	// SymmPacked queues C ← α A B + β C.
	SymmPacked(alpha T, a Packed[T], b Matrix[T], beta T, c Matrix[T])
	// PotrfPacked factors A = L Lᵀ, stores L in A and waits. If pivot p, from 0, is not a positive finite number,
	// PotrfPacked returns a *PivotError, and the leading p × p part of L is valid.
	PotrfPacked(a Packed[T]) error
	// TrsmPacked queues B ← op(L)⁻¹ B, where L is the lower triangle of A. A zero on the diagonal gives Inf or NaN.
	TrsmPacked(t Trans, a Packed[T], b Matrix[T])
}
