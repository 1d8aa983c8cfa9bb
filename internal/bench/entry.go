package bench

import (
	"context"
	"fmt"
	"math"
	"sync"
	"time"
	"unsafe"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/internal/bench/peer"
)

// entries creates the entries of a case. The result of the first device is the reference for all other results.
func entries[T backend.Float](ctx context.Context, c *blasBench, r routine, threads, n int,
	queue func(backend.Device) backend.Backend[T], routines func(*peer.Library) peer.Routines[T]) ([]Entry, error) {
	p := newProblem[T](r, n)
	size := int(unsafe.Sizeof(T(0)))
	limiter := func(d backend.Device) string {
		name := ceilingName(d)
		if name != "" && r.vector {
			return memoryCeiling
		}
		return name
	}
	var list []Entry
	for _, d := range c.devices[threads] {
		e, err := deviceEntry(queue(d).With(ctx, nil), p)
		if err != nil {
			return nil, err
		}
		e.Implementation, e.Limiter, e.Work = ownName(d), limiter(d), r.flops(n)
		list = append(list, e)
	}
	for _, l := range c.peers {
		prepare := p.preparation()
		e := Entry{Implementation: l.Name, Work: r.flops(n), Check: p.check, Before: func() error { prepare(); return nil }}
		if len(c.ceilings) > 0 {
			e.Limiter = limiter(c.ceilings[0])
		}
		if l.Library == nil {
			e.Reason = l.Missing
		} else if e.Run = p.library(routines(l.Library)); e.Run == nil {
			e.Reason = fmt.Sprintf("has no %s in float%d", r.name, 8*size)
		} else {
			e.Enter = func() func() {
				restore := l.Library.Threads(threads)
				return func() {
					restore()
					if threads > 1 {
						time.Sleep(l.Library.Spin)
					}
				}
			}
		}
		list = append(list, e)
	}
	if r.vector {
		return append(list, c.memoryEntry(r.flops(n), float64(size*n)*float64(n+1)/2, threads)), nil
	}
	for _, d := range c.ceilings {
		list = append(list, ceilingEntry(d, size == 4, threads))
	}
	return list, nil
}

// deviceEntry runs a routine on a device, on copies of the operands if the device cannot use Go memory.
func deviceEntry[T backend.Float](q backend.Backend[T], p *problem[T]) (Entry, error) {
	var e Entry
	mem := placer[T]{q: q}
	a, b, c := mem.place(p.a), mem.place(p.b), mem.place(p.c)
	if err := mem.freeOnError(); err != nil {
		return e, err
	}
	_, shared := q.(backend.Wrapper[T])
	e.Run = p.device(q, a, b, c)
	prepare := p.preparation()
	e.Before = func() error {
		prepare()
		if shared || !p.inPlace {
			return nil
		}
		return q.Upload(c, p.c)
	}
	e.Check = func() *Check {
		if !shared {
			if err := q.Download(p.c, c); err != nil {
				return &Check{Difference: math.Inf(1)} // the run itself succeeded: an infinite difference lets the check fail
			}
		}
		return p.check()
	}
	e.Close = mem.free
	return e, nil
}

// ceilingEntry times multiply-adds on one core, for about a millisecond.
func ceilingEntry(d backend.Device, single bool, threads int) Entry {
	const flops = 5e7
	run := func() float64 { return d.(ceiling).Ceiling(single, flops) }
	return Entry{
		Implementation: ceilingName(d),
		Work:           run() * float64(threads),
		Run:            func() error { run(); return nil },
	}
}

// copyBytes is the number of bytes in each copy, more than all caches have.
var copyBytes = 128 << 20

// memoryEntry times a copy by several goroutines, and derives the rate of a routine that executes flops operations
// and moves the given number of bytes.
func (c *blasBench) memoryEntry(flops, bytes float64, threads int) Entry {
	if c.memory[0] == nil {
		c.memory = [2][]byte{make([]byte, copyBytes), make([]byte, copyBytes)}
		// Before the first write, all pages share one physical page, which stays in the cache.
		for i := range c.memory[0] {
			c.memory[0][i] = byte(i)
		}
	}
	from, to, chunk := c.memory[0], c.memory[1], copyBytes/threads
	return Entry{
		Implementation: memoryCeiling,
		Work:           flops * 2 * float64(chunk*threads) / bytes,
		Run: func() error {
			var wg sync.WaitGroup
			for i := range threads {
				wg.Go(func() { copy(to[i*chunk:(i+1)*chunk], from[i*chunk:(i+1)*chunk]) })
			}
			wg.Wait()
			return nil
		},
	}
}
