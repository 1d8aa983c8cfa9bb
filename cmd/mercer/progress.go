package main

import (
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"

	"github.com/mercer-go/mercer/solvers"
)

// progress reports on stderr the progress of work that takes more than a second: by a bar on a terminal, else by lines.
type progress struct {
	w    io.Writer
	bar  *progressbar.ProgressBar // nil if the report consists of lines
	mute bool

	mu    sync.Mutex
	start time.Time
	last  time.Time // time of the last line
	stage string
	shown bool
	done  bool
}

// patience is the time before the first report, and the least time between two lines.
const patience = time.Second

// steps is the number of steps of the bar.
const steps = 1000

func (a *app) newProgress() *progress {
	p := &progress{w: a.stderr, mute: a.quiet, start: time.Now()}
	if f, ok := a.stderr.(*os.File); ok && term.IsTerminal(int(f.Fd())) && !a.quiet {
		p.bar = progressbar.NewOptions(steps,
			progressbar.OptionSetWriter(a.stderr),
			progressbar.OptionSetWidth(30),
			progressbar.OptionSetElapsedTime(true),
			progressbar.OptionSetPredictTime(true),
			progressbar.OptionClearOnFinish(),
			progressbar.OptionThrottle(100*time.Millisecond),
			progressbar.OptionSetRenderBlankState(false))
	}
	return p
}

// report is the callback of a solver.
func (p *progress) report(s solvers.Progress) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	if p.mute || p.done || now.Sub(p.start) < patience {
		return
	}
	if !p.shown && s.Fraction > 0.9 {
		return // the work will end soon: a report is not worthwhile
	}
	stageChanged := s.Stage != p.stage
	p.stage, p.shown = s.Stage, true
	if p.bar != nil {
		if stageChanged {
			p.bar.Describe(fmt.Sprintf("%-6s", s.Stage))
		}
		_ = p.bar.Set(int(s.Fraction * steps))
		return
	}
	if !stageChanged && now.Sub(p.last) < patience {
		return
	}
	p.last = now
	fmt.Fprintf(p.w, "%s: %.0f %%\n", s.Stage, 100*s.Fraction)
}

// close clears the bar.
func (p *progress) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.bar != nil && p.shown && !p.done {
		_ = p.bar.Clear()
	}
	p.done = true
}
