package main

import (
	"fmt"
	"math"

	"gonum.org/v1/gonum/mat"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/kernels"
	"github.com/mercer-go/mercer/tuning"
)

// tuneReport is what `mercer tune` prints.
type tuneReport struct {
	By      string      `json:"by"`
	Search  string      `json:"search"`
	Kernel  string      `json:"kernel"` // the best
	Lambda  float64     `json:"lambda"`
	Score   float64     `json:"score"` // RMSE; with evidence −log p per row
	N       int         `json:"n"`
	Rows    int         `json:"rows"` // that were searched with
	D       int         `json:"d"`
	Device  string      `json:"device"`
	Vary    []string    `json:"vary"`
	Trials  []tuneTrial `json:"trials"`
	Seconds float64     `json:"seconds"`
	Test    *score      `json:"test,omitempty"`
	Plot    string      `json:"plot,omitempty"`
	Learner string      `json:"learner,omitempty"`
	Model   string      `json:"model,omitempty"`

	best int
}

// tuneTrial is a kernel that was tried.
type tuneTrial struct {
	Kernel  string      `json:"kernel"`
	Values  []float64   `json:"values"` // of Vary
	Lambda  float64     `json:"lambda"` // its best
	Score   float64     `json:"score"`
	Seconds float64     `json:"seconds"`
	Points  []tunePoint `json:"points"`
}

// tunePoint is a λ that was tried.
type tunePoint struct {
	Lambda float64  `json:"lambda"`
	Score  *float64 `json:"score"` // null: none, K + λI being singular to working precision
}

// shown is a score as it is shown: the root of a mean square.
func shown(by tuning.Criterion, score float64) float64 {
	if by == tuning.Evidence {
		return score
	}
	return math.Sqrt(score)
}

func newTuneReport(f tuneFlags, res *tuning.Result, dev backend.Device, x *mat.Dense) tuneReport {
	by := res.Params.Criterion
	r := tuneReport{
		By: f.by, Search: f.search, Kernel: res.Kernel().String(), Lambda: res.Lambda(), Score: shown(by, res.Score()),
		Device: dev.Info().Device, Vary: res.Vary, best: res.Best,
	}
	r.Rows, _ = x.Dims()
	for _, t := range res.Trials {
		trial := tuneTrial{Kernel: t.Kernel.String(), Lambda: t.Lambda(), Score: shown(by, t.Score()), Seconds: t.Seconds}
		for _, p := range kernels.Params(t.Kernel) {
			for _, name := range res.Vary {
				if p.Name == name {
					trial.Values = append(trial.Values, p.Value)
				}
			}
		}
		for _, at := range t.Points {
			point := tunePoint{Lambda: at.Lambda}
			if v := shown(by, at.Score); !math.IsInf(v, 0) && !math.IsNaN(v) {
				point.Score = &v
			}
			trial.Points = append(trial.Points, point)
		}
		r.Trials = append(r.Trials, trial)
	}
	return r
}

// heading names the score.
func (r tuneReport) heading() string {
	switch tuning.Criterion(r.By) {
	case tuning.LeaveOneOut:
		return "leave-one-out RMSE"
	case tuning.GCV:
		return "GCV RMSE"
	case tuning.KFold:
		return "k-fold RMSE"
	}
	return "-log p / row"
}

// text is the report for eyes: the trials, and what they led to.
func (r tuneReport) text() string {
	// Few parameters have a column each, many are in the kernel's text below.
	head, align := []string{""}, "l"
	few := len(r.Vary) <= 4
	if few {
		for _, name := range r.Vary {
			head, align = append(head, name), align+"r"
		}
	}
	lines := [][]string{append(head, "lambda", r.heading(), "time")}
	align += "rrr"
	for i, t := range r.Trials {
		line := []string{""}
		if i == r.best {
			line[0] = "*"
		}
		if few {
			for _, v := range t.Values {
				line = append(line, short(v))
			}
		}
		lines = append(lines, append(line, short(t.Lambda), short(t.Score), seconds(t.Seconds)))
	}
	rows := [][]string{
		{"kernel", r.Kernel},
		{"lambda", exact(r.Lambda)},
		{r.heading(), short(r.Score)},
		{"data", fmt.Sprintf("%s, %s", count(r.N, "row"), count(r.D, "feature"))},
	}
	if r.Rows < r.N {
		rows = append(rows, []string{"searched with", count(r.Rows, "row")})
	}
	rows = append(rows, []string{"device", r.Device}, []string{"time", seconds(r.Seconds)})
	if r.Test != nil {
		rows = append(rows, []string{"held out", r.Test.line()})
	}
	if r.Plot != "" {
		rows = append(rows, []string{"plot", r.Plot})
	}
	if r.Model != "" {
		rows = append(rows, []string{"model", r.Model + ", " + r.Learner})
	}
	return table(align, lines) + "\n" + table("ll", rows)
}
