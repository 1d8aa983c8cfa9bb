//go:build !purego && (amd64 || arm64)

package ukr

// reproducible sets the field Reproducible of a tier that implements the virtual machine.
func (t *Tier) reproducible() *Tier {
	t.Reproducible = func() *Tier {
		same := *t
		same.Pairs, same.F64.Gemm16, same.F32.Gemm16, same.F32.Round16 = 0, nil, nil, nil
		return &same
	}
	return t
}
