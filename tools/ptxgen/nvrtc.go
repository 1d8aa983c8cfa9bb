package main

import (
	"fmt"
	"path/filepath"
	"runtime"
	"unsafe"

	"github.com/ebitengine/purego"
)

// compiler holds the functions of NVRTC.
type compiler struct {
	version   func(major, minor *int32) int32
	create    func(program *uintptr, source, name *byte, count int32, headers, names **byte) int32
	compileIt func(program uintptr, count int32, options **byte) int32
	ptxSize   func(program uintptr, size *uint64) int32
	ptx       func(program uintptr, text *byte) int32
	cubinSize func(program uintptr, size *uint64) int32
	cubin     func(program uintptr, code *byte) int32
	logSize   func(program uintptr, size *uint64) int32
	log       func(program uintptr, text *byte) int32
	destroy   func(program *uintptr) int32
}

// open loads NVRTC 11.8. It first loads NVRTC's builtins library, which NVRTC finds by its name.
func open(folder string) (*compiler, error) {
	if _, err := purego.Dlopen(filepath.Join(folder, "libnvrtc-builtins.so.11.8"), purego.RTLD_NOW|purego.RTLD_GLOBAL); err != nil {
		return nil, err
	}
	library, err := purego.Dlopen(filepath.Join(folder, "libnvrtc.so.11.2"), purego.RTLD_NOW|purego.RTLD_GLOBAL)
	if err != nil {
		return nil, err
	}
	c := new(compiler)
	for name, f := range map[string]any{
		"nvrtcVersion": &c.version, "nvrtcCreateProgram": &c.create, "nvrtcCompileProgram": &c.compileIt,
		"nvrtcGetPTXSize": &c.ptxSize, "nvrtcGetPTX": &c.ptx, "nvrtcGetCUBINSize": &c.cubinSize, "nvrtcGetCUBIN": &c.cubin, "nvrtcGetProgramLogSize": &c.logSize,
		"nvrtcGetProgramLog": &c.log, "nvrtcDestroyProgram": &c.destroy,
	} {
		purego.RegisterLibFunc(f, library, name)
	}
	var major, minor int32
	c.version(&major, &minor)
	if major != 11 || minor != 8 {
		return nil, fmt.Errorf("NVRTC has version %d.%d, but 11.8 is needed", major, minor)
	}
	return c, nil
}

// text returns a copy of s as a C string, which the caller keeps reachable while C uses it.
func text(s string) *byte { return unsafe.SliceData(append([]byte(s), 0)) }

// compile returns the PTX of mainFile, or its GPU code if code is true.
func (c *compiler) compile(sources map[string]string, code bool, options ...string) ([]byte, error) {
	var pin runtime.Pinner
	defer pin.Unpin()
	list := func(texts []string) **byte {
		p := make([]*byte, len(texts)+1)
		for i, s := range texts {
			p[i] = text(s)
			pin.Pin(p[i])
		}
		pin.Pin(&p[0])
		return &p[0]
	}
	var headers, headerNames []string
	for _, name := range names(sources) {
		if isHeader(name) {
			headers, headerNames = append(headers, sources[name]), append(headerNames, name)
		}
	}
	var program uintptr
	if r := c.create(&program, text(sources[mainFile]), text(mainFile), int32(len(headers)), list(headers), list(headerNames)); r != 0 {
		return nil, fmt.Errorf("nvrtcCreateProgram: %d", r)
	}
	defer c.destroy(&program)
	result := c.compileIt(program, int32(len(options)), list(options))
	var size uint64
	if c.logSize(program, &size); size > 1 {
		output := make([]byte, size)
		c.log(program, &output[0])
		if result != 0 {
			return nil, fmt.Errorf("%s", output[:size-1])
		}
	}
	if result != 0 {
		return nil, fmt.Errorf("nvrtcCompileProgram: %d", result)
	}
	sizeOf, getCode, name := c.ptxSize, c.ptx, "PTX"
	if code {
		sizeOf, getCode, name = c.cubinSize, c.cubin, "CUBIN"
	}
	if r := sizeOf(program, &size); r != 0 || size == 0 {
		return nil, fmt.Errorf("nvrtcGet%sSize: got the result code %d and a size of %d bytes", name, r, size)
	}
	out := make([]byte, size)
	if r := getCode(program, &out[0]); r != 0 {
		return nil, fmt.Errorf("nvrtcGet%s: %d", name, r)
	}
	if code {
		return out, nil
	}
	return out[:size-1], nil // without the NUL byte at the end
}
