//go:build race

package cpu

const underRace = true
