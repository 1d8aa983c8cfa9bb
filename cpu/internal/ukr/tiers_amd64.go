//go:build !purego

package ukr

import "golang.org/x/sys/cpu"

// assembled lists the tiers in assembly, the fastest first.
func assembled() []*Tier { return []*Tier{avx512(), avx2()} }

func avx512() *Tier {
	t := generic()
	t.Name = "avx512"
	t.Short = true
	t.Features = []Feature{
		{"AVX", cpu.X86.HasAVX},
		{"AVX2", cpu.X86.HasAVX2}, // functions of the avx2 tier serve for narrow strips
		{"FMA3", cpu.X86.HasFMA},
		{"AVX512F", cpu.X86.HasAVX512F},
	}
	t.F64 = Kernels[float64]{
		MR: 14, NR: 16,
		PackA:   Packer[float64]{Width: 14, Transpose: transposeAF64AVX512, Copy: copyAF64AVX512},
		PackB:   Packer[float64]{Width: 16, Transpose: transposeBF64AVX512, Copy: copyBF64AVX512},
		UnpackB: unpackBF64AVX512,
		Gemm:    gemmF64AVX512, SqDist: sqDistF64AVX512, L1: l1F64AVX512, Chi2: chi2F64AVX512, Trsm: trsmF64AVX512,
		GemmDirect: gemmDirectF64AVX512, SyrkDirect: syrkDirectF64AVX512, TrsmDirect: trsmDirectF64AVX512, TrmmDirect: trmmDirectF64AVX512,
		PotrfDirect: potrfDirectF64AVX512, TransposeDirect: transposeDirectF64AVX512,
		Affine: affineF64AVX512, Add: addF64AVX512, Mul: mulF64AVX512, Sqrt: sqrtF64AVX512,
		Exp: expF64AVX512, Log: logF64AVX512, Pow: powF64AVX512, Tanh: tanhF64AVX512,
		Sin: reducing(16, sinF64AVX512, sinGeneric[float64]), Cos: reducing(16, cosF64AVX512, cosGeneric[float64]),
		Distance: distanceF64AVX512, DistanceExp: distanceExpF64AVX512, DistanceExpTo: distanceExpToF64AVX512, Decay: decayF64AVX512,
		Dot: dotF64AVX512, Axpy: axpyF64AVX512, DotAxpy: dotAxpyF64AVX512,
		Dot4: dot4F64AVX512, Axpy4: axpy4F64AVX512, DotAxpy8: dotAxpy8F64AVX512, DotAxpy12: dotAxpy12F64AVX512, Peak: peakF64AVX512,
		Gemv: gemvF64AVX512, GemvT: gemvTF64AVX512, Ger: gerF64AVX512, Trsv: trsvF64AVX512, Syr2k: syr2kF64AVX512,
		Strips: []Strips[float64]{
			{Width: 4, Rows: 4, Add: stripF64AVX2, Both: stripBothF64AVX2},
			{Width: 8, Rows: 8, Add: stripF64AVX512, Both: stripBothF64AVX512},
		},
	}
	t.F32 = Kernels[float32]{
		MR: 14, NR: 32,
		PackA:   Packer[float32]{Width: 14, Transpose: transposeAF32AVX512, Copy: copyAF32AVX512},
		PackB:   Packer[float32]{Width: 32, Transpose: transposeBF32AVX512, Copy: copyBF32AVX512},
		UnpackB: unpackBF32AVX512,
		Gemm:    gemmF32AVX512, SqDist: sqDistF32AVX512, L1: l1F32AVX512, Chi2: chi2F32AVX512, Trsm: trsmF32AVX512,
		GemmDirect: gemmDirectF32AVX512, SyrkDirect: syrkDirectF32AVX512, TrsmDirect: trsmDirectF32AVX512, TrmmDirect: trmmDirectF32AVX512,
		PotrfDirect: potrfDirectF32AVX512, TransposeDirect: transposeDirectF32AVX512,
		Affine: affineF32AVX512, Add: addF32AVX512, Mul: mulF32AVX512, Sqrt: sqrtF32AVX512,
		Exp: expF32AVX512, Log: logF32AVX512, Pow: powF32AVX512, Tanh: tanhF32AVX512,
		Sin: reducing(32, sinF32AVX512, sinGeneric[float32]), Cos: reducing(32, cosF32AVX512, cosGeneric[float32]),
		Distance: distanceF32AVX512, DistanceExp: distanceExpF32AVX512, DistanceExpTo: distanceExpToF32AVX512, Decay: decayF32AVX512,
		Dot: dotF32AVX512, Axpy: axpyF32AVX512, DotAxpy: dotAxpyF32AVX512,
		Dot4: dot4F32AVX512, Axpy4: axpy4F32AVX512, DotAxpy8: dotAxpy8F32AVX512, DotAxpy12: dotAxpy12F32AVX512, Peak: peakF32AVX512,
		Gemv: gemvF32AVX512, GemvT: gemvTF32AVX512, Ger: gerF32AVX512, Trsv: trsvF32AVX512, Syr2k: syr2kF32AVX512,
		Strips: []Strips[float32]{
			{Width: 8, Rows: 4, Add: stripF32AVX2, Both: stripBothF32AVX2},
			{Width: 16, Rows: 8, Add: stripF32AVX512, Both: stripBothF32AVX512},
		},
	}
	return t
}

func avx2() *Tier {
	t := generic()
	t.Name = "avx2"
	t.Short = true
	t.Features = []Feature{
		{"AVX", cpu.X86.HasAVX},
		{"AVX2", cpu.X86.HasAVX2},
		{"FMA3", cpu.X86.HasFMA},
	}
	t.F64 = Kernels[float64]{
		MR: 6, NR: 8,
		PackA:   Packer[float64]{Width: 6, Transpose: transposeAF64AVX2, Copy: copyAF64AVX2},
		PackB:   Packer[float64]{Width: 8, Transpose: transposeBF64AVX2, Copy: copyBF64AVX2},
		UnpackB: unpackBF64AVX2,
		Gemm:    gemmF64AVX2, SqDist: sqDistF64AVX2, L1: l1F64AVX2, Chi2: chi2F64AVX2, Trsm: trsmF64AVX2,
		GemmDirect: gemmDirectF64AVX2, SyrkDirect: syrkDirectF64AVX2, TrsmDirect: trsmDirectF64AVX2, TrmmDirect: trmmDirectF64AVX2,
		PotrfDirect: potrfDirectF64AVX2, TransposeDirect: transposeDirectF64AVX2,
		Affine: affineF64AVX2, Add: addF64AVX2, Mul: mulF64AVX2, Sqrt: sqrtF64AVX2,
		Exp: expF64AVX2, Log: logF64AVX2, Pow: powF64AVX2, Tanh: tanhF64AVX2,
		Sin: reducing(8, sinF64AVX2, sinGeneric[float64]), Cos: reducing(8, cosF64AVX2, cosGeneric[float64]),
		Distance: distanceF64AVX2, DistanceExp: distanceExpF64AVX2, DistanceExpTo: distanceExpToF64AVX2, Decay: decayF64AVX2,
		Dot: dotF64AVX2, Axpy: axpyF64AVX2, DotAxpy: dotAxpyF64AVX2,
		Dot4: dot4F64AVX2, Axpy4: axpy4F64AVX2, DotAxpy8: dotAxpy8F64AVX2, DotAxpy12: dotAxpy12F64AVX2, Peak: peakF64AVX2,
		Gemv: gemvF64AVX2, GemvT: gemvTF64AVX2, Ger: gerF64AVX2, Trsv: trsvF64AVX2, Syr2k: syr2kF64AVX2,
		Strips: []Strips[float64]{{Width: 4, Rows: 4, Add: stripF64AVX2, Both: stripBothF64AVX2}},
	}
	t.F32 = Kernels[float32]{
		MR: 6, NR: 16,
		PackA:   Packer[float32]{Width: 6, Transpose: transposeAF32AVX2, Copy: copyAF32AVX2},
		PackB:   Packer[float32]{Width: 16, Transpose: transposeBF32AVX2, Copy: copyBF32AVX2},
		UnpackB: unpackBF32AVX2,
		Gemm:    gemmF32AVX2, SqDist: sqDistF32AVX2, L1: l1F32AVX2, Chi2: chi2F32AVX2, Trsm: trsmF32AVX2,
		GemmDirect: gemmDirectF32AVX2, SyrkDirect: syrkDirectF32AVX2, TrsmDirect: trsmDirectF32AVX2, TrmmDirect: trmmDirectF32AVX2,
		PotrfDirect: potrfDirectF32AVX2, TransposeDirect: transposeDirectF32AVX2,
		Affine: affineF32AVX2, Add: addF32AVX2, Mul: mulF32AVX2, Sqrt: sqrtF32AVX2,
		Exp: expF32AVX2, Log: logF32AVX2, Pow: powF32AVX2, Tanh: tanhF32AVX2,
		Sin: reducing(16, sinF32AVX2, sinGeneric[float32]), Cos: reducing(16, cosF32AVX2, cosGeneric[float32]),
		Distance: distanceF32AVX2, DistanceExp: distanceExpF32AVX2, DistanceExpTo: distanceExpToF32AVX2, Decay: decayF32AVX2,
		Dot: dotF32AVX2, Axpy: axpyF32AVX2, DotAxpy: dotAxpyF32AVX2,
		Dot4: dot4F32AVX2, Axpy4: axpy4F32AVX2, DotAxpy8: dotAxpy8F32AVX2, DotAxpy12: dotAxpy12F32AVX2, Peak: peakF32AVX2,
		Gemv: gemvF32AVX2, GemvT: gemvTF32AVX2, Ger: gerF32AVX2, Trsv: trsvF32AVX2, Syr2k: syr2kF32AVX2,
		Strips: []Strips[float32]{{Width: 8, Rows: 4, Add: stripF32AVX2, Both: stripBothF32AVX2}},
	}
	return t
}

// reducing is the function on spans that does by vector what that does, and the
// steps of nr elements at which it stops by scalar.
func reducing[T Float](nr int, vector, scalar func(*Span[T])) func(*Span[T]) {
	return func(s *Span[T]) {
		x, n := s.X, s.N
		for vector(s); s.Flag != 0; vector(s) {
			left := s.N - nr
			s.X, s.N = &at(x, n-s.N, 1)[0], nr
			scalar(s)
			if left == 0 {
				break
			}
			s.X, s.N = &at(x, n-left, 1)[0], left
		}
		s.X, s.N, s.Flag = x, n, 0
	}
}
