package solvers

import "sync"

// progress turns counts of floating-point operations into Progress. A stage
// ends at its planned share whatever the backend has counted, so that the
// fraction neither falls nor passes 1.
type progress struct {
	mu       sync.Mutex
	notify   func(Progress)
	share    map[string]float64 // of the whole
	stage    string
	base     float64 // fraction at which the stage began
	total    float64 // operations of the whole
	count    float64 // operations done in this stage
	reported float64 // the last fraction reported
}

func newProgress(report func(Progress), plan Plan) *progress {
	p := &progress{notify: report, share: map[string]float64{}, total: plan.Flops}
	for _, s := range plan.stages {
		p.share[s.name] += s.flops / plan.Flops
	}
	return p
}

// enter begins a stage.
func (p *progress) enter(stage string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.stage != "" {
		p.base += p.share[p.stage]
	}
	p.stage, p.count = stage, 0
	p.report(p.base)
}

// done is called by the backend with the operations that have been finished.
func (p *progress) done(flops float64) {
	if p.notify == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.count += flops
	// A thousand calls are enough for any display.
	if f := p.base + min(p.count/p.total, p.share[p.stage]); f >= p.reported+1e-3 {
		p.report(f)
	}
}

func (p *progress) finish() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.report(1)
}

func (p *progress) report(fraction float64) {
	p.reported = max(p.reported, min(fraction, 1))
	if p.notify != nil {
		p.notify(Progress{Stage: p.stage, Fraction: p.reported})
	}
}
