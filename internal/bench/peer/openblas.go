//go:build linux && (amd64 || arm64) && !static

package peer

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/cpu"
)

// envCore is the environment variable from which OpenBLAS reads the core type when it is loaded.
const envCore = "OPENBLAS_CORETYPE"

func openBLAS(locations []string) (*Library, error) {
	l, err := open("openblas", []string{"libopenblas.so.0", "libopenblas.so"}, locations)
	if err != nil {
		return nil, err
	}
	var config, core func() string
	var threads func(int32)
	symbols := map[string]any{"openblas_get_config": &config, "openblas_get_corename": &core, "openblas_set_num_threads": &threads}
	if err := l.bind(symbols); err != nil {
		return nil, err
	}
	x := &cpu.X86
	avx512 := x.HasAVX512F && x.HasAVX512DQ && x.HasAVX512BW && x.HasAVX512VL
	avx2 := x.HasAVX2 && x.HasFMA
	note := ""
	if set := os.Getenv(envCore); set != "" {
		note = fmt.Sprintf(" (%s=%s)", envCore, set)
	} else if coreType := betterCore(core(), avx512, avx2); coreType != "" {
		detected := core()
		if l, err = l.reload(envCore, coreType); err == nil {
			err = l.bind(symbols)
		}
		if err != nil {
			return nil, err
		}
		if note = fmt.Sprintf(" (%s=%s, detected: %s)", envCore, coreType, detected); core() == detected {
			note = fmt.Sprintf(" (mis-detected: this processor is a %s)", coreType)
		}
	}
	words := strings.Fields(config())
	if slices.Contains(words, "USE64BITINT") {
		return nil, fmt.Errorf("bench: openblas: %s has 64-bit integers: install a build with 32-bit integers", l.path)
	}
	out := &Library{Name: l.name, Path: l.path, Spin: 150 * time.Millisecond} // the threads of OpenBLAS spin for 2²⁸ clock cycles, 104 ms at 2.6 GHz
	out.Detail = fmt.Sprintf("%s, core type %s%s", strings.Join(words[:min(2, len(words))], " "), core(), note)
	return out, l.routines(out, func(n int) { threads(int32(n)) })
}

// betterCore returns the core type for a processor with the given instruction sets, or "" if core, the type that
// OpenBLAS has detected, is right.
func betterCore(core string, avx512, avx2 bool) string {
	core = strings.ToLower(core)
	switch {
	case avx512 && !slices.Contains([]string{"skylakex", "cooperlake", "sapphirerapids"}, core):
		return "SkylakeX"
	case avx2 && !avx512 && !slices.Contains([]string{"haswell", "zen"}, core):
		return "Haswell"
	}
	return ""
}
