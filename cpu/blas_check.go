package cpu

import "gonum.org/v1/gonum/blas"

// These constants are the texts of gonum's panics. gonum does not export them.
const (
	badTranspose = "blas: illegal transpose"
	badUplo      = "blas: illegal triangle"
	badDiag      = "blas: illegal diagonal"
	badSide      = "blas: illegal side"

	mLT0 = "blas: m < 0"
	nLT0 = "blas: n < 0"
	kLT0 = "blas: k < 0"

	badLdA = "blas: bad leading dimension of A"
	badLdB = "blas: bad leading dimension of B"
	badLdC = "blas: bad leading dimension of C"

	shortA = "blas: insufficient length of a"
	shortB = "blas: insufficient length of b"
	shortC = "blas: insufficient length of c"
)

// must panics with text, a message of gonum, if ok is false. The checks run in gonum's order.
func must(ok bool, text string) {
	if !ok {
		panic(text)
	}
}

func mustTranspose(t blas.Transpose) {
	must(t == blas.NoTrans || t == blas.Trans || t == blas.ConjTrans, badTranspose)
}

func mustUplo(ul blas.Uplo) { must(ul == blas.Upper || ul == blas.Lower, badUplo) }

func mustSide(s blas.Side) { must(s == blas.Left || s == blas.Right, badSide) }

func mustDiag(d blas.Diag) { must(d == blas.NonUnit || d == blas.Unit, badDiag) }

// holdsMatrix reports whether a slice of the given length holds a rows × cols matrix with row stride ld.
func holdsMatrix(length, rows, cols, ld int) bool { return length >= (rows-1)*ld+cols }

// swapIf returns rows and cols, in reverse order if the operand is stored transposed.
func swapIf(t blas.Transpose, rows, cols int) (int, int) {
	if t == blas.NoTrans {
		return rows, cols
	}
	return cols, rows
}
