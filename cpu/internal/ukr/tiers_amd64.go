//go:build !purego

package ukr

import "golang.org/x/sys/cpu"

// assembled lists the tiers in assembly, fastest first.
func assembled() []*Tier { return []*Tier{avx512(), avx2()} }

func avx512() *Tier {
	t := generic()
	t.Name, t.Reproducible = "avx512", nil
	t.Short = true
	t.Features = []Feature{
		{"AVX", cpu.X86.HasAVX},
		{"AVX2", cpu.X86.HasAVX2}, // functions of the avx2 tier process narrow strips
		{"FMA3", cpu.X86.HasFMA},
		{"AVX512F", cpu.X86.HasAVX512F},
	}
	t.F64, t.F32 = kernelsF64AVX512(), kernelsF32AVX512()
	// Zen 4 has no AVX-VNNI, and multiplies vectors of 512 bits in halves. Server processors with
	// Zen 5, and Intel's since Sapphire Rapids, have AVX-VNNI and multiply whole vectors.
	if cpu.X86.HasAVXVNNI {
		t.Products = 2e11
	}
	// Without the instruction VPDPWSSD, a multiply-add of Gemm16 takes two instructions.
	t.Optional = []Feature{{"AVX512VNNI", cpu.X86.HasAVX512VNNI}}
	if t.Optional[0].Has {
		t.Pairs = 2
	} else {
		t.F64.Gemm16, t.F32.Gemm16 = nil, nil
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
	t.F64, t.F32 = kernelsF64AVX2(), kernelsF32AVX2()
	t.Pairs = 1.5
	return t.reproducible()
}
