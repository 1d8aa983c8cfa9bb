package cudatest

import (
	"encoding/binary"
	"math"
	"runtime"
	"strings"
	"testing"
	"unsafe"

	"github.com/mercer-go/mercer/cuda/internal/ptx"
)

// onHeap moves a slice to the heap: the garbage collector moves memory of stacks, but not of the heap.
//
//go:noinline
func onHeap[T any](s []T) []T {
	onTheHeap = s
	return s
}

var onTheHeap any

// runBody runs the PTX instructions of body on a grid of one-dimensional blocks. It returns the array to which
// their parameter points, one 32-bit number for each thread of a block.
func runBody(t *testing.T, body string, blocks, threads int) ([]uint32, error) {
	t.Helper()
	m, err := NewInterpreter([]byte(".visible .entry f(\n.param .u64 p\n)\n{\n"+body+"\nret;\n}\n"), 1)
	if err != nil {
		t.Fatal(err)
	}
	memory := onHeap(make([]uint32, threads))
	start := uint64(uintptr(unsafe.Pointer(&memory[0])))
	m.Allocate(start, uint64(4*threads))
	err = m.Launch("f", [3]int{blocks, 1, 1}, [3]int{threads, 1, 1}, binary.LittleEndian.AppendUint64(nil, start))
	return memory, err
}

const address = `
	mov.u32 %r1, %tid.x;
	ld.param.u64 %rd1, [p];
	cvta.to.global.u64 %rd1, %rd1;
	mul.wide.u32 %rd2, %r1, 4;
	add.s64 %rd3, %rd1, %rd2;`

// TestFaultsAreFound checks that a launch returns an error for mistakes that a GPU would not
// report, or that would cause a wrong result only occasionally.
func TestFaultsAreFound(t *testing.T) {
	const reverse = `
	.shared .align 4 .b8 s[256];` + address + `
	mov.u64 %rd4, s;
	add.s64 %rd5, %rd4, %rd2;
	st.shared.u32 [%rd5], %r1;
	BARRIER
	sub.s64 %rd6, %rd4, %rd2;
	ld.shared.u32 %r2, [%rd6+28];
	st.global.u32 [%rd3], %r2;`
	got, err := runBody(t, strings.Replace(reverse, "BARRIER", "bar.sync 0;", 1), 1, 8)
	for i, v := range got {
		if err != nil || int(v) != 7-i {
			t.Fatalf("%v, %v", got, err)
		}
	}
	for name, c := range map[string]struct {
		body            string
		blocks, threads int
		want            string
	}{
		"a missing barrier":                      {strings.Replace(reverse, "BARRIER", "", 1), 1, 8, "a race on shared memory"},
		"two blocks write the same word":         {address + "st.global.u32 [%rd3], %r1;", 2, 8, "a race on global memory"},
		"two threads write the same word":        {address + "st.global.u32 [%rd1], 7;", 1, 2, "a race on global memory"},
		"a barrier that one thread does not see": {address + "setp.eq.u32 %p1, %r1, 3;\n@%p1 bra $L_1;\nbar.sync 0;\n$L_1:\n", 1, 8, "1 threads have ended, and 7 wait at a barrier"},
		"beyond the end":                         {address + "ld.global.u32 %r2, [%rd3+4];", 1, 8, "in no allocation"},
		"before the beginning":                   {address + "ld.global.u32 %r2, [%rd3+-4];", 1, 8, "in no allocation"},
		"beyond shared memory":                   {".shared .align 4 .b8 s[4];\n" + address + "ld.shared.u32 %r2, [%rd2];", 1, 8, "of 4 bytes of shared memory"},
		"beyond local memory":                    {".local .align 4 .b8 l[4];\n" + address + "ld.local.u32 %r2, [%rd2];", 1, 8, "of 4 bytes of local memory"},
		"an address that is not aligned":         {address + "ld.global.u32 %r2, [%rd3+2];", 1, 8, "is no multiple of 4"},
	} {
		if _, err := runBody(t, c.body, c.blocks, c.threads); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

// TestInstructions checks single instructions against the results that the PTX manual defines.
func TestInstructions(t *testing.T) {
	f := func(v float32) uint32 { return math.Float32bits(v) }
	for _, c := range []struct {
		code string // instructions that set %r9 or %f9
		want uint32
	}{
		{"mov.u32 %r8, 0x80000000; shr.s32 %r9, %r8, 31;", 0xffffffff},
		{"mov.u32 %r8, 0x80000000; shr.u32 %r9, %r8, 31;", 1},
		{"shl.b32 %r9, 1, 32;", 0},
		{"mov.u32 %r8, -7; div.s32 %r9, %r8, 2;", 0xfffffffd},
		{"mov.u32 %r8, -7; setp.lt.s32 %p1, %r8, 2; selp.b32 %r9, 5, 6, %p1;", 5},
		{"mov.u32 %r8, -7; setp.lt.u32 %p1, %r8, 2; selp.b32 %r9, 5, 6, %p1;", 6},
		{"mov.u32 %r8, -1; mul.wide.s32 %rd8, %r8, 3; cvt.u32.u64 %r9, %rd8;", 0xfffffffd},
		{"mov.u64 %rd8, 0x123456789abcdef0; mov.b64 {%r8, %r9}, %rd8;", 0x12345678},
		{"mov.u32 %r8, 0xffffffff; add.cc.u32 %r7, %r8, 1; addc.u32 %r9, 2, 3;", 6},
		{"sub.cc.u32 %r7, 1, 2; subc.u32 %r9, 5, 3;", 1},
		{"mov.u32 %r8, 0x10000; mad.lo.cc.u32 %r7, %r8, %r8, 0; madc.hi.u32 %r9, %r8, %r8, 5;", 6},
		{"mov.u64 %rd8, 1; clz.b64 %r9, %rd8;", 63},
		{"mov.f32 %f1, 0f7FC00000; setp.neu.f32 %p1, %f1, %f1; selp.b32 %r9, 5, 6, %p1;", 5},
		{"mov.f32 %f1, 0f7FC00000; setp.ne.f32 %p1, %f1, %f1; selp.b32 %r9, 5, 6, %p1;", 6},
		{"mov.f32 %f1, 0f7FC00000; min.NaN.f32 %f9, %f1, 0f3F800000; mov.b32 %r9, %f9;", 0x7fc00000},
		// The exact result 1 − 2⁻²⁴·(1/2) lies between two numbers; rounding down gives 1 − 2⁻²⁴.
		{"mov.f32 %f1, 0fB3000000; fma.rm.f32 %f9, %f1, 0f3F800000, 0f3F800000; mov.b32 %r9, %f9;", f(1 - 0x1p-24)},
		{"mov.f32 %f1, 0fB2000000; fma.rn.f32 %f9, %f1, 0f3F800000, 0f3F800000; mov.b32 %r9, %f9;", f(1)},
		{"mov.f32 %f1, 0f40200000; cvt.rni.f32.f32 %f9, %f1; mov.b32 %r9, %f9;", f(2)}, // 2.5 is rounded to even
		{"mov.f32 %f1, 0fC0200000; cvt.rzi.s32.f32 %r9, %f1;", 0xfffffffe},
		{"mov.f32 %f1, 0fC0200000; cvt.sat.f32.f32 %f9, %f1; mov.b32 %r9, %f9;", 0},
		{"mov.f32 %f1, 0f477FF000; cvt.rn.f16.f32 %rs9, %f1; cvt.u32.u16 %r9, %rs9;", 0x7c00}, // 65520 is rounded to infinity
		{"mov.f32 %f1, 0f33C00000; cvt.rn.f16.f32 %rs9, %f1; cvt.u32.u16 %r9, %rs9;", 2},      // 1.5·2⁻²⁴ is rounded to 2·2⁻²⁴
		{"mov.f32 %f1, 0fC3020000; ex2.approx.ftz.f32 %f9, %f1; mov.b32 %r9, %f9;", 0},        // 2⁻¹³⁰ becomes 0
		{"mov.f32 %f1, 0f00400000; sqrt.approx.ftz.f32 %f9, %f1; mov.b32 %r9, %f9;", 0},
	} {
		got, err := runBody(t, address+strings.ReplaceAll(c.code, "; ", ";\n")+"\nst.global.u32 [%rd3], %r9;", 1, 1)
		if err != nil || got[0] != c.want {
			t.Errorf("%s %#x, want %#x, %v", c.code, got[0], c.want, err)
		}
	}
	if _, err := NewInterpreter([]byte(".visible .entry f(\n.param .u64 p\n)\n{\nwgmma.fence.sync.aligned;\n}\n"), 1); err == nil || !strings.Contains(err.Error(), "line 5") {
		t.Errorf("an unknown instruction: %v", err)
	}
}

// TestMissingBarriers removes each barrier of a shipped function in turn and checks that the
// interpreter finds a race every time.
func TestMissingBarriers(t *testing.T) {
	text, err := ptx.For(9, 0)
	if err != nil {
		t.Fatal(err)
	}
	_, body, _ := strings.Cut(string(text), ".visible .entry check_diag_f64(")
	body, _, _ = strings.Cut(body, "\n}\n")
	const n = 256 // the last row has the invalid pivot; every step of the search must pass on its number
	for removed := -1; removed < strings.Count(body, "bar.sync"); removed++ {
		pieces := strings.SplitAfter(body, "bar.sync")
		modified := body
		if removed >= 0 {
			head := strings.TrimSuffix(strings.Join(pieces[:removed+1], ""), "bar.sync")
			_, tail, _ := strings.Cut(strings.Join(pieces[removed+1:], ""), ";")
			modified = head + tail
		}
		m, err := NewInterpreter([]byte(".visible .entry check_diag_f64("+modified+"\n}\n"), 1)
		if err != nil {
			t.Fatal(err)
		}
		l, diag, value, counts := onHeap(make([]float64, n*n)), onHeap(make([]float64, n)), onHeap(make([]float64, 1)), onHeap(make([]int32, 2))
		for i := range n {
			l[i*n+i], diag[i] = 1, 5
		}
		l[255*n+2], l[255*n+255] = 3, -1
		args := binary.LittleEndian.AppendUint64(nil, n)
		for _, p := range []unsafe.Pointer{unsafe.Pointer(&l[0]), nil, unsafe.Pointer(&diag[0]), nil, unsafe.Pointer(&counts[0]), unsafe.Pointer(&counts[1]), unsafe.Pointer(&value[0])} {
			switch {
			case p != nil:
				args = binary.LittleEndian.AppendUint64(args, uint64(uintptr(p)))
			case len(args) == 16: // the two strides after the first pointer
				args = binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(args, n), 1)
			default: // the number of the first row
				args = binary.LittleEndian.AppendUint64(args, 100)
			}
		}
		for p, bytes := range map[unsafe.Pointer]int{unsafe.Pointer(&l[0]): 8 * n * n, unsafe.Pointer(&diag[0]): 8 * n, unsafe.Pointer(&value[0]): 8, unsafe.Pointer(&counts[0]): 8} {
			m.Allocate(uint64(uintptr(p)), uint64(bytes))
		}
		err = m.Launch("check_diag_f64", [3]int{1, 1, 1}, [3]int{256, 1, 1}, args)
		runtime.KeepAlive(l) // the interpreter has only addresses, which the garbage collector does not see
		runtime.KeepAlive(diag)
		switch {
		case removed < 0 && (err != nil || counts[1] != 356 || value[0] != 5-9):
			t.Fatalf("row %d, pivot %g: %v", counts[1], value[0], err)
		case removed >= 0 && (err == nil || !strings.Contains(err.Error(), "a race on shared memory")):
			t.Errorf("without barrier %d: %v", removed, err)
		}
	}
}

// TestShippedPTXIsKnown checks that the interpreter can parse and run every instruction in the PTX
// that is shipped for each target.
func TestShippedPTXIsKnown(t *testing.T) {
	for _, target := range ptx.Targets {
		text, err := ptx.For(target/10, target%10)
		if err != nil {
			t.Fatal(err)
		}
		m, err := NewInterpreter(text, 1)
		if err != nil {
			t.Fatalf("target %d: %v", target, err)
		}
		if n := strings.Count(string(text), ".visible .entry "); n == 0 || len(m.Entries()) != n {
			t.Errorf("target %d: %d functions of %d", target, len(m.Entries()), n)
		}
	}
}
