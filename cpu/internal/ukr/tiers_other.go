//go:build !amd64 || purego

package ukr

// assembled lists the tiers in assembly: none here.
func assembled() []*Tier { return nil }
