package run

import (
	"math"
	"sync"

	"github.com/mercer-go/mercer/internal/elementary"
)

// Progress reports the completed fraction of a call, which never decreases and never exceeds 1. After a stage, it is
// the sum of the shares of the completed stages, even if fewer or more operations were counted than planned.
type Progress struct {
	mu       sync.Mutex
	notify   func(stage string, fraction float64)
	shares   map[string]float64 // fraction of the whole work for each stage
	stage    string
	base     float64 // fraction at the beginning of the stage
	total    float64 // operations of the whole work
	count    float64 // operations completed in this stage
	reported float64 // the last fraction reported
}

// NewProgress returns a Progress that calls notify, which may be nil, from one goroutine at a time. shares holds,
// for each stage, its fraction of the whole work, and total is the number of operations of the whole work.
func NewProgress(notify func(stage string, fraction float64), shares map[string]float64, total float64) *Progress {
	return &Progress{notify: notify, shares: shares, total: total}
}

// Enter begins a stage.
func (p *Progress) Enter(stage string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.stage != "" {
		p.base += p.shares[p.stage]
	}
	p.stage, p.count = stage, 0
	p.report(p.base)
}

// Done adds a number of completed operations. The backend calls it.
func (p *Progress) Done(flops float64) {
	if p.notify == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.count += flops
	// Limit the number of reports to a thousand.
	if f := p.base + min(p.count/p.total, p.shares[p.stage]); f >= p.reported+1e-3 {
		p.report(f)
	}
}

// Finish reports the fraction 1.
func (p *Progress) Finish() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.report(1)
}

// Report reports a fraction that the caller has computed.
func (p *Progress) Report(stage string, fraction float64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.stage = stage
	p.report(fraction)
}

// Fraction returns the last reported fraction.
func (p *Progress) Fraction() float64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.reported
}

func (p *Progress) report(fraction float64) {
	if math.IsNaN(fraction) {
		return
	}
	p.reported = max(p.reported, min(fraction, 1))
	if p.notify != nil {
		p.notify(p.stage, p.reported)
	}
}

// LogShare returns the completed fraction of an iteration that reduces a quantity from the value first to
// the value tol. gap is the present value. The logarithm of the quantity is assumed to decrease linearly.
func LogShare(gap, first, tol float64) float64 {
	if !(gap > tol) || !(first > tol) {
		return 1
	}
	return min(max(1-elementary.Log(gap/tol)/elementary.Log(first/tol), 0), 1)
}
