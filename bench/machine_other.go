//go:build !linux

package bench

func governor() string { return "" }

func virtual() bool { return false }

func readUsage() (usage, bool) { return usage{}, false }
