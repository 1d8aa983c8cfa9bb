package cudatest

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"unsafe"
)

// Interpreter executes the device functions of a PTX text on the CPU. The blocks of a launch run one after the
// other in a random order, and so do the threads of a block between two barriers.
//
// A launch fails in each of these cases:
//
//   - A thread accesses memory outside of an allocation or a variable, or at an address that is not aligned.
//   - The threads of a block reach different numbers of barriers.
//   - Two accesses to the same bytes race: at least one is a write, and they are by two blocks, or by two threads
//     of a block without a barrier in between.
//
// Registers, local and shared memory contain NaN until they are written.
type Interpreter struct {
	Ran map[string]int // number of launches of each device function

	functions map[string]*function
	shared    map[string]int // offsets of the module's variables in shared memory
	sharedEnd int
	globals   map[string]uint64 // addresses of constant tables
	tables    [][]uint64        // memory of the constant tables
	rng       *rand.Rand

	allocations []allocation // ordered by address
	last        allocation   // the allocation that was accessed last
	shadows     map[uint64]*[shadowPage]shadow
	page        uint64 // number of the page that was accessed last; the field shadow points to the page's records
	shadow      *[shadowPage]shadow
	launches    uint32
}

type allocation struct{ from, to uint64 }

// shadow records the last write and the last read of two bytes of memory. After reads by several blocks or several
// threads, rBlock or rThread is the constant `several`.
type shadow struct {
	launch                 uint32
	wBlock, wThread, wTime int32
	rBlock, rThread, rTime int32
}

const (
	shadowPage = 2048 // number of shadows per page of 4096 bytes
	several    = -2
	never      = -1
)

// NewInterpreter parses a PTX text. The seed determines the order of blocks and threads.
func NewInterpreter(text []byte, seed uint64) (*Interpreter, error) {
	m := &Interpreter{
		Ran: map[string]int{}, functions: map[string]*function{}, shared: map[string]int{}, globals: map[string]uint64{},
		rng: rand.New(rand.NewPCG(seed, 0)), shadows: map[uint64]*[shadowPage]shadow{},
	}
	return m, m.parse(string(text))
}

// Entries lists the device functions.
func (m *Interpreter) Entries() []string {
	var names []string
	for name, f := range m.functions {
		if f.entry {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// Allocate makes memory accessible to device functions; Free makes it inaccessible.
func (m *Interpreter) Allocate(address, bytes uint64) {
	i, _ := slices.BinarySearchFunc(m.allocations, address, func(a allocation, address uint64) int { return int(int64(a.from - address)) })
	m.allocations = slices.Insert(m.allocations, i, allocation{address, address + bytes})
}

func (m *Interpreter) Free(address uint64) {
	m.allocations = slices.DeleteFunc(m.allocations, func(a allocation) bool { return a.from == address })
	m.last = allocation{}
}

// threadError is the panic value of an invalid operation of a thread.
type threadError string

// block is a block of threads during its execution.
type block struct {
	m       *Interpreter
	f       *function
	index   int32
	id      [3]uint32
	grid    [3]uint32
	threads [3]uint32
	shared  []byte
	shadows []shadow
	time    int32 // number of barriers passed
}

// thread is the state of a thread, or of a function call in a thread.
type thread struct {
	b     *block
	id    int32
	xyz   [3]uint32
	f     *function
	pc    int
	r     []uint64
	param []byte
	local []byte
	carry uint64
	ended bool
}

// Launch runs a device function whose arguments are packed in args.
func (m *Interpreter) Launch(name string, grid, threads [3]int, args []byte) (err error) {
	f := m.functions[name]
	if f == nil || !f.entry {
		return fmt.Errorf("there is no device function %q", name)
	}
	if len(args) != f.params {
		return fmt.Errorf("%s has parameters of %d bytes, not %d", name, f.params, len(args))
	}
	m.Ran[name]++
	m.launches++
	count := threads[0] * threads[1] * threads[2]
	list := make([]thread, count)
	r := make([]uint64, count*len(f.registers))
	local := make([]byte, count*f.local)
	b := &block{m: m, f: f, shared: make([]byte, f.sharedEnd), shadows: make([]shadow, f.sharedEnd/2)}
	for i := range 3 {
		b.grid[i], b.threads[i] = uint32(grid[i]), uint32(threads[i])
	}
	order := m.rng.Perm(grid[0] * grid[1] * grid[2])
	for _, index := range order {
		b.index = int32(index)
		b.id = [3]uint32{uint32(index % grid[0]), uint32(index / grid[0] % grid[1]), uint32(index / grid[0] / grid[1])}
		b.time = 0
		fill(b.shared)
		for i := range b.shadows {
			b.shadows[i] = shadow{wThread: never, rThread: never}
		}
		fill(local)
		for i := range list {
			t := &list[i]
			*t = thread{b: b, id: int32(i), f: f, r: r[i*len(f.registers) : (i+1)*len(f.registers)], param: args, local: local[i*f.local : (i+1)*f.local]}
			t.xyz = [3]uint32{uint32(i % threads[0]), uint32(i / threads[0] % threads[1]), uint32(i / threads[0] / threads[1])}
			copy(t.r, f.registers)
			if f.frame > len(args) {
				t.param = make([]byte, f.frame)
				copy(t.param, args)
			}
		}
		if err := b.run(list); err != nil {
			return fmt.Errorf("%s, block %v: %w", name, b.id, err)
		}
	}
	return nil
}

func fill(b []byte) {
	for i := range b {
		b[i] = 0xff
	}
}

// run runs all threads of the block to their end.
func (b *block) run(list []thread) (err error) {
	var t *thread
	defer func() {
		if r := recover(); r != nil {
			message, ok := r.(threadError)
			if !ok {
				panic(r)
			}
			err = fmt.Errorf("thread %d, line %d of the PTX: %s", t.id, t.f.code[t.pc-1].line, message)
		}
	}()
	for {
		ended := 0
		for _, i := range b.m.rng.Perm(len(list)) {
			t = &list[i]
			t.run()
			if t.ended {
				ended++
			}
		}
		if ended == len(list) {
			return nil
		}
		if ended > 0 {
			return fmt.Errorf("%d threads have ended, and %d wait at a barrier", ended, len(list)-ended)
		}
		b.time++
	}
}

// run runs a thread to its next barrier or to its end.
func (t *thread) run() {
	for {
		in := &t.f.code[t.pc]
		t.pc++
		if in.guarded && (t.r[in.guard] != 0) == in.unless {
			continue
		}
		switch in.kind {
		case ordinary:
			in.execute(t)
		case branch:
			t.pc = in.target
		case barrier:
			return
		case leave:
			t.ended = true
			return
		case call:
			t.call(in)
		}
	}
}

// call executes a call of a function, which must not contain a barrier.
func (t *thread) call(in *instruction) {
	f := t.b.m.functions[in.callee]
	if f == nil || len(in.arguments) != len(f.arguments) {
		panic(threadError("wrong call of " + in.callee))
	}
	var c *thread
	if n := len(f.free); n > 0 {
		c, f.free = f.free[n-1], f.free[:n-1]
	} else {
		c = &thread{f: f, r: make([]uint64, len(f.registers)), param: make([]byte, f.frame), local: make([]byte, f.local)}
	}
	c.b, c.id, c.xyz, c.pc, c.ended = t.b, t.id, t.xyz, 0, false
	copy(c.r, f.registers)
	fill(c.local)
	for i, offset := range in.arguments {
		copy(c.param[f.arguments[i]:], t.param[offset:offset+8])
	}
	defer func() {
		if r := recover(); r != nil {
			if message, ok := r.(threadError); ok {
				r = threadError(fmt.Sprintf("%s, line %d: %s", in.callee, f.code[c.pc-1].line, message))
			}
			panic(r)
		}
	}()
	c.run()
	if !c.ended {
		panic(threadError("a barrier in a called function"))
	}
	if in.result >= 0 {
		copy(t.param[in.result:in.result+8], c.param[f.result:f.result+8])
	}
	f.free = append(f.free, c)
}

// pointer checks an access and returns a pointer to its bytes.
func (t *thread) pointer(s space, address uint64, bytes int, write bool) unsafe.Pointer {
	if address%uint64(bytes) != 0 && s != parameters {
		panic(threadError(fmt.Sprintf("address %#x is no multiple of %d", address, bytes)))
	}
	var memory []byte
	switch s {
	case global:
		return t.global(address, uint64(bytes), write)
	case shared:
		memory = t.b.shared
	case local:
		memory = t.local
	case parameters:
		memory = t.param
	}
	if address+uint64(bytes) > uint64(len(memory)) || address > uint64(len(memory)) {
		panic(threadError(fmt.Sprintf("%d bytes at %#x of %d bytes of %s memory", bytes, int64(address), len(memory), s)))
	}
	if s == shared {
		for i := address / 2; i < (address+uint64(bytes))/2; i++ {
			t.access(&t.b.shadows[i], write, "shared")
		}
	}
	return unsafe.Pointer(&memory[address])
}

// global checks an access to global memory and returns a pointer to its bytes.
func (t *thread) global(address, bytes uint64, write bool) unsafe.Pointer {
	m := t.b.m
	p := m.find(address, bytes)
	for a := address; a < address+bytes; a += 2 {
		if page := a / (2 * shadowPage); page != m.page || m.shadow == nil {
			m.page, m.shadow = page, m.shadows[page]
			if m.shadow == nil {
				m.shadow = new([shadowPage]shadow)
				m.shadows[page] = m.shadow
			}
		}
		s := &m.shadow[a/2%shadowPage]
		if s.launch != m.launches {
			*s = shadow{launch: m.launches, wThread: never, rThread: never}
		}
		t.access(s, write, "global")
	}
	return p
}

// find returns a pointer to bytes of global memory. All these bytes must be in one allocation.
func (m *Interpreter) find(address, bytes uint64) unsafe.Pointer {
	if address < m.last.from || address+bytes > m.last.to {
		i, _ := slices.BinarySearchFunc(m.allocations, address+1, func(a allocation, start uint64) int { return int(int64(a.from - start)) })
		if i == 0 || address+bytes > m.allocations[i-1].to {
			panic(threadError(fmt.Sprintf("%d bytes at %#x of global memory, which are in no allocation", bytes, address)))
		}
		m.last = m.allocations[i-1]
	}
	return *(*unsafe.Pointer)(unsafe.Pointer(&address))
}

// access records an access, and panics with a threadError if it is part of a race.
func (t *thread) access(s *shadow, write bool, spaceName string) {
	block, time := t.b.index, t.b.time
	race := func(otherThread, otherBlock int32, otherTime int32) bool {
		return otherThread != never && (otherBlock != block || otherTime == time && otherThread != t.id)
	}
	if race(s.wThread, s.wBlock, s.wTime) || write && race(s.rThread, s.rBlock, s.rTime) {
		panic(threadError(fmt.Sprintf("a race on %s memory: the last write is by thread %d of block %d after %d barriers, the last read by thread %d of block %d after %d, this access by thread %d of block %d after %d",
			spaceName, s.wThread, s.wBlock, s.wTime, s.rThread, s.rBlock, s.rTime, t.id, block, time)))
	}
	switch {
	case write:
		s.wBlock, s.wThread, s.wTime = block, t.id, time
	case s.rThread == never || s.rBlock == block && s.rTime != time:
		s.rBlock, s.rThread, s.rTime = block, t.id, time
	case s.rBlock != block:
		s.rBlock = several
	case s.rThread != t.id:
		s.rThread = several
	}
}

// The following functions convert the contents of a register to a number, or a number to the contents.

func toFloat32(r uint64) float64   { return float64(math.Float32frombits(uint32(r))) }
func fromFloat32(v float64) uint64 { return uint64(math.Float32bits(float32(v))) }
func toFloat64(r uint64) float64   { return math.Float64frombits(r) }
func fromFloat64(v float64) uint64 { return math.Float64bits(v) }
func fromBool(b bool) uint64 {
	if b {
		return 1
	}
	return 0
}
func signed(r uint64, n int) int64 {
	return int64(r<<(64-n)) >> (64 - n)
}
func lowBits(r uint64, n int) uint64 { return r << (64 - n) >> (64 - n) }
