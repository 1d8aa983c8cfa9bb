//go:build !purego

package ukr

import "golang.org/x/sys/cpu"

// assembled lists the tiers in assembly, fastest first.
func assembled() []*Tier { return []*Tier{neon()} }

func neon() *Tier {
	t := generic()
	t.Name = "neon"
	t.Short = true
	t.Features = []Feature{{"ASIMD", cpu.ARM64.HasASIMD}}
	t.F64, t.F32 = kernelsF64NEON(), kernelsF32NEON()
	return t.reproducible()
}
