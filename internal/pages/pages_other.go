//go:build !linux

package pages

func adviseHuge([]byte) {}
