package tuning

import (
	"math"
	"sync"
	"time"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/solvers"
)

// ForEachDevice calls f for 0 … n−1, on every device one call after the other, on several
// devices at once; there is one at least. A device takes the next number when it has
// done one. The error is that of the least number that failed; no number is begun
// after it.
func ForEachDevice(devices []backend.Device, n int, f func(dev backend.Device, i int) error) error {
	var mu sync.Mutex
	var failure error
	next, failed := 0, n
	take := func() (int, bool) {
		mu.Lock()
		defer mu.Unlock()
		next++
		return next - 1, next-1 < failed
	}
	work := func(dev backend.Device) {
		for {
			i, more := take()
			if !more {
				return
			}
			if err := f(dev, i); err != nil {
				mu.Lock()
				if i < failed {
					failed, failure = i, err
				}
				mu.Unlock()
			}
		}
	}
	var group sync.WaitGroup
	for _, dev := range devices[1:min(len(devices), n)] {
		group.Go(func() { work(dev) })
	}
	work(devices[0])
	group.Wait()
	return failure
}

// Share opens devices on the processor of dev that divide its threads and its memory, for
// n calls that have too little work each for all threads: as many devices as there are
// threads, n at most. The caller closes them. What is computed does not depend on the
// number of threads. Where nothing can be divided there is none.
func Share(dev backend.Device, n int) (devices []backend.Device, err error) {
	info := dev.Info()
	count := min(info.Threads, n)
	if count < 2 {
		return nil, nil
	}
	for i := range count {
		one, err := backend.Open(info.Device, backend.Config{Threads: (info.Threads + i) / count, Memory: max(info.Memory/int64(count), 1)})
		if err != nil {
			for _, dev := range devices {
				dev.Close()
			}
			return nil, err
		}
		devices = append(devices, one)
	}
	return devices, nil
}

// parts is the progress of n pieces of work that go on at once. Piece i calls
// report(i), and whole is called by one goroutine at a time.
func parts(n int, whole func(solvers.Progress)) (report func(i int) func(solvers.Progress)) {
	var mu sync.Mutex
	done := make([]float64, n)
	return func(i int) func(solvers.Progress) {
		return func(q solvers.Progress) {
			mu.Lock()
			defer mu.Unlock()
			done[i] = max(done[i], q.Fraction)
			sum := 0.0
			for _, v := range done {
				sum += v
			}
			whole(solvers.Progress{Fraction: sum / float64(n)})
		}
	}
}

// job is where a score is computed.
type job struct {
	devices []backend.Device // the first one, or where it has parts all of them
	inside  func(solvers.Progress)
}

// tryAll judges kernels for all λ, several at once where there are devices for it;
// the score of one is +Inf when it has none.
func (s *search) tryAll(list [][]float64) ([]float64, error) {
	trials, lasts := make([]Trial, len(list)), make([]error, len(list))
	one := func(x []float64, j job) (t Trial, last, err error) {
		start := time.Now()
		p := s.p
		if p.Kernel, err = s.space.at(x); err != nil {
			return t, nil, err
		}
		points, err := s.score(p, j)
		if err != nil {
			return t, nil, err
		}
		t = Trial{Kernel: p.Kernel, Points: points, Best: -1, Seconds: time.Since(start).Seconds()}
		for _, v := range x {
			t.Factors = append(t.Factors, math.Exp(v))
		}
		for i, at := range points {
			if at.Err != nil {
				last = at.Err
			} else if t.Best < 0 || at.Score < points[t.Best].Score {
				t.Best = i
			}
		}
		return t, last, nil
	}
	devices := append([]backend.Device{s.dev}, s.par.Devices...)
	report := parts(len(list), func(q solvers.Progress) {
		s.inside(solvers.Progress{Fraction: q.Fraction * float64(len(list))})
	})
	judge := func(devices []backend.Device, i int) (err error) {
		trials[i], lasts[i], err = one(list[i], job{devices, report(i)})
		return err
	}
	var err error
	if len(list) == 1 {
		err = judge(devices, 0)
	} else {
		err = ForEachDevice(devices, len(list), func(dev backend.Device, i int) error { return judge([]backend.Device{dev}, i) })
	}
	if err != nil {
		return nil, err
	}
	scores := make([]float64, len(list))
	for i, t := range trials {
		s.made++
		if lasts[i] != nil {
			s.last = lasts[i]
		}
		if scores[i] = math.Inf(1); t.Best >= 0 {
			s.res.Trials = append(s.res.Trials, t)
			scores[i] = t.Score()
		}
	}
	return scores, nil
}
