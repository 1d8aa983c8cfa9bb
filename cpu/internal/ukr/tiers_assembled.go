//go:build !purego && (amd64 || arm64)

package ukr

// reproducible sets the field Reproducible of a tier that implements the virtual machine.
func (t *Tier) reproducible() *Tier {
	t.Reproducible = func() *Tier {
		tier := *t
		tier.Pairs, tier.F64.Gemm16, tier.F32.Gemm16, tier.F32.Round16 = 0, nil, nil, nil
		return &tier
	}
	return t
}
