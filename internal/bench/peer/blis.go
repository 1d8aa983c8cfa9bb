//go:build linux && (amd64 || arm64) && !static

package peer

import "fmt"

// blis opens BLIS, a BLAS library without LAPACK.
func blis(locations []string) (*Library, error) {
	l, err := open("blis", []string{"libblis.so.4", "libblis.so"}, locations)
	if err != nil {
		return nil, err
	}
	var version func() string
	var core func() int32
	var coreName func(int32) string
	var integer func() int64
	var threads func(int64)
	if err := l.bind(map[string]any{
		"bli_info_get_version_str": &version, "bli_arch_query_id": &core, "bli_arch_string": &coreName,
		"bli_info_get_blas_int_type_size": &integer, "bli_thread_set_num_threads": &threads,
	}); err != nil {
		return nil, err
	}
	if bits := integer(); bits != 32 {
		return nil, fmt.Errorf("bench: blis: %s has %d-bit integers: install a build with 32-bit integers", l.path, bits)
	}
	out := &Library{Name: l.name, Path: l.path, Detail: fmt.Sprintf("BLIS %s, core type %s", version(), coreName(core()))}
	return out, l.routines(out, func(n int) { threads(int64(n)) })
}
