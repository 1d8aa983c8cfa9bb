package main

import (
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/internal/process"
	"github.com/mercer-go/mercer/internal/texttable"
	"github.com/mercer-go/mercer/kernels"
	"github.com/mercer-go/mercer/learners"
	"github.com/mercer-go/mercer/learners/tuning"
)

// tuneReport is the output of `mercer tune`.
type tuneReport struct {
	Program string      `json:"program"` // always "tune"; mercer bench import reads it
	By      string      `json:"by"`
	Search  string      `json:"search"`
	Kernel  string      `json:"kernel,omitempty"` // the best kernel
	Lambda  *float64    `json:"lambda,omitempty"`
	Score   float64     `json:"score"` // RMSE, or the fraction of wrong classes, or −log p per row for evidence
	N       int         `json:"n"`
	Assumed string      `json:"task_assumed,omitempty"`
	Rows    int         `json:"rows"` // number of rows used in the search
	D       int         `json:"d"`
	Device  string      `json:"device"`
	Vary    []string    `json:"vary"`
	Trials  []tuneTrial `json:"trials,omitempty"`
	// Parameters and Grid are set for a grid: the best setting, and all settings.
	Parameters map[string]string `json:"parameters,omitempty"`
	Grid       []gridTrial       `json:"grid,omitempty"`
	Seconds    float64           `json:"seconds"`
	Planned    int64             `json:"planned_bytes,omitempty"` // planned peak memory of the whole process; peak_bytes is the measured value
	process.Used
	Test    *score `json:"test,omitempty"`
	Plot    string `json:"plot,omitempty"`
	Learner string `json:"learner,omitempty"`
	Model   string `json:"model,omitempty"`
	Refused string `json:"fit_error,omitempty"` // why the fit failed; if set, no model was written
	// PassedOver is the number of settings with better scores whose fit to all rows failed.
	PassedOver int `json:"passed_over,omitempty"`
	// If PassedOver > 0, a warning names the setting with the best score and the fitted setting.
	// Warnings also include the warnings of the model.
	Warnings []string `json:"warnings,omitempty"`

	task      learners.Task
	bestIndex int
	several   bool // several kernels were tried, and each trial shows the text of its kernel
}

// tuneTrial is a kernel that was tried.
type tuneTrial struct {
	Kernel  string      `json:"kernel"`
	Values  []float64   `json:"values"` // values of the varied parameters in this kernel, in the order of Vary
	Lambda  float64     `json:"lambda"` // the best λ
	Score   float64     `json:"score"`
	Seconds float64     `json:"seconds"`
	Points  []tunePoint `json:"points"`
}

// tunePoint is a λ that was tried.
type tunePoint struct {
	Lambda float64  `json:"lambda"`
	Score  *float64 `json:"score"` // null if K + λI is singular to working precision
}

// displayedScore returns the number to display for a score: for a mean square, its root.
func displayedScore(criterion tuning.Criterion, score float64) float64 {
	if criterion == tuning.Evidence {
		return score
	}
	return math.Sqrt(score)
}

// newTuneReport makes the report of searches from one or more kernels. results[best] is the best.
func newTuneReport(f tuneFlags, results []tuned, best int, dev backend.Device) tuneReport {
	res := results[best]
	criterion, lambda := res.Params.Criterion, res.Lambda()
	r := tuneReport{
		Program: "tune", By: f.criterion, Search: f.search, Kernel: res.name(res.Kernel()), Lambda: &lambda, Score: displayedScore(criterion, res.Score()),
		Device: dev.Info().Device, Vary: res.Params.Vary, several: len(results) > 1 || res.object != nil,
	}
	for i, result := range results {
		if i == best {
			r.bestIndex = len(r.Trials) + result.Best
		}
		for _, t := range result.Trials {
			r.Trials = append(r.Trials, newTuneTrial(result, t, criterion))
		}
	}
	return r
}

// showTrial makes r.Trials[index], with the given λ, the fitted setting of the report.
func (r *tuneReport) showTrial(index int, lambda, score float64) {
	r.bestIndex, r.Kernel, r.Lambda, r.Score = index, r.Trials[index].Kernel, &lambda, score
	r.Trials[index].Lambda, r.Trials[index].Score = lambda, score
}

func newTuneTrial(result tuned, t tuning.Trial, criterion tuning.Criterion) tuneTrial {
	trial := tuneTrial{Kernel: result.name(t.Kernel), Lambda: t.Lambda(), Score: displayedScore(criterion, t.Score()), Seconds: t.Seconds}
	for _, p := range kernels.Params(t.Kernel) {
		if slices.Contains(result.Params.Vary, p.Name) {
			trial.Values = append(trial.Values, p.Value)
		}
	}
	for _, p := range t.Points {
		point := tunePoint{Lambda: p.Lambda}
		if v := displayedScore(criterion, p.Score); !math.IsInf(v, 0) && !math.IsNaN(v) {
			point.Score = &v
		}
		trial.Points = append(trial.Points, point)
	}
	return trial
}

// heading returns the name of the score for the head of a table.
func (r tuneReport) heading() string {
	switch tuning.Criterion(r.By) {
	case tuning.LeaveOneOut:
		return "leave-one-out RMSE"
	case tuning.GCV:
		return "GCV RMSE"
	case tuning.KFold:
		if r.Grid != nil && r.task == learners.Classification {
			return "wrong in k folds"
		}
		return "k-fold RMSE"
	}
	return "-log p / row"
}

// text returns the report as text: the trials, and the result.
func (r tuneReport) text() string {
	trials := r.gridText
	rows := [][]string{}
	if r.Grid == nil {
		trials = r.trialsText
		rows = [][]string{{"kernel", r.Kernel}, {"lambda", exact(*r.Lambda)}}
	}
	for _, name := range slices.Sorted(maps.Keys(r.Parameters)) {
		rows = append(rows, []string{name, r.Parameters[name]})
	}
	rows = append(rows, []string{r.heading(), fourDigits(r.Score)}, []string{"data", fmt.Sprintf("%s, %s", count(r.N, "row"), count(r.D, "feature"))})
	if r.Assumed != "" {
		rows = append(rows, []string{"task", r.Assumed})
	}
	if r.Rows < r.N {
		rows = append(rows, []string{"searched with", count(r.Rows, "row")})
	}
	rows = append(rows, []string{"device", r.Device}, []string{"time", seconds(r.Seconds)})
	if r.Test != nil {
		rows = append(rows, []string{"held out", r.Test.line()})
	}
	for _, text := range r.Warnings {
		rows = append(rows, []string{"warning", text})
	}
	if r.Plot != "" {
		rows = append(rows, []string{"plot", r.Plot})
	}
	if r.Model != "" {
		rows = append(rows, []string{"model", r.Model + ", " + r.Learner})
	}
	return trials() + "\n" + texttable.Format("ll", rows)
}

// trialsText returns a table of the trials, one for each kernel that was tried.
func (r tuneReport) trialsText() string {
	// If at most four parameters vary, each has a column.
	head, align := []string{""}, "l"
	valueColumns := len(r.Vary) <= 4 && !r.several
	if r.several {
		head, align = append(head, "kernel"), align+"l"
	}
	if valueColumns {
		for _, name := range r.Vary {
			head, align = append(head, name), align+"r"
		}
	}
	lines := [][]string{append(head, "lambda", r.heading(), "time")}
	align += "rrr"
	for i, t := range r.Trials {
		if i != r.bestIndex && r.Search == string(tuning.Gradient) {
			continue // only the best trial is printed, because a search by gradients may have hundreds of trials
		}
		line := []string{""}
		if i == r.bestIndex {
			line[0] = "*"
		}
		if r.several {
			line = append(line, t.Kernel)
		}
		if valueColumns {
			for _, v := range t.Values {
				line = append(line, fourDigits(v))
			}
		}
		lines = append(lines, append(line, fourDigits(t.Lambda), fourDigits(t.Score), seconds(t.Seconds)))
	}
	return texttable.Format(align, lines)
}
