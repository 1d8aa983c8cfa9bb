package pipeline

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"

	"github.com/apache/beam/sdks/v2/go/pkg/beam/io/filesystem"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/beam/internal/sums"
	"github.com/mercer-go/mercer/dataset"
	"github.com/mercer-go/mercer/internal/modelfile"
	"github.com/mercer-go/mercer/internal/numeric"
	"github.com/mercer-go/mercer/learners"
	"github.com/mercer-go/mercer/solvers"
)

// Report is the JSON report written next to the model.
type Report struct {
	Learner   string    `json:"learner"`
	Kernel    string    `json:"kernel,omitempty"`
	Lambda    float64   `json:"lambda"`
	Rows      int64     `json:"rows"`
	Features  int       `json:"features"`
	Functions int       `json:"functions"`
	Targets   []string  `json:"targets"`
	Dropped   []string  `json:"dropped,omitempty"`
	Classes   []string  `json:"classes,omitempty"`
	Residual  float64   `json:"residual"`
	Measured  bool      `json:"measured"` // whether the residual comes from a pass over the samples, not from the sums
	MSE       []float64 `json:"mse"`      // mean squared error over the training rows, for each column of y
	// LogEvidence is the log marginal likelihood of the rows under the posterior of Params.Std, summed over the
	// targets. LogEvidenceBound is its lower bound by Titsias, for nystrom-ridge only. Both are nil without Params.Std.
	LogEvidence      *float64 `json:"log_evidence,omitempty"`
	LogEvidenceBound *float64 `json:"log_evidence_bound,omitempty"`
	Scores           []Score  `json:"scores,omitempty"`
	Model            string   `json:"model"`
}

type writeFn struct{ Params Params }

func (f *writeFn) ProcessElement(ctx context.Context, _ []byte, plan fitPlan, chosen chosenModel, total partialSums) (err error) {
	defer markUserError(&err)
	var q *solvers.Posterior
	if f.Params.Std {
		if q, err = f.Params.posterior(ctx, &plan, &chosen, total.Sums); err != nil {
			return err
		}
	}
	bundle, err := f.Params.bundle(&plan, &chosen, q)
	if err != nil {
		return err
	}
	var model bytes.Buffer
	if err := modelfile.Write(&model, *bundle); err != nil {
		return fmt.Errorf("pipeline: %w", err)
	}
	out := Report{
		Learner: f.Params.Learner, Kernel: plan.Kernels[chosen.Candidate], Lambda: chosen.Lambda,
		Rows: chosen.Rows, Features: plan.Features, Functions: plan.Bases[chosen.Candidate].Size(),
		Targets: f.Params.Targets, Dropped: f.Params.Drop, Classes: bundle.Encoder.Labels,
		Residual: chosen.Residual, Measured: chosen.Measured, MSE: chosen.MSE, Scores: chosen.Scores, Model: f.Params.Model,
	}
	if q != nil {
		out.LogEvidence = &q.Log
		if plan.Bases[chosen.Candidate].Kind == sums.Centers {
			out.LogEvidenceBound = &q.Bound
		}
	}
	report, err := json.MarshalIndent(out, "", "  ")
	if err != nil {
		return fmt.Errorf("pipeline: %w", err)
	}
	if err := writeFile(ctx, f.Params.Model, model.Bytes()); err != nil {
		return err
	}
	return writeFile(ctx, f.Params.Model+".json", append(report, '\n'))
}

// writeFile writes a file atomically if the file system supports renaming.
func writeFile(ctx context.Context, path string, data []byte) error {
	fs, err := filesystem.New(ctx, path)
	if err != nil {
		return fmt.Errorf("pipeline: %s: %w", path, err)
	}
	defer fs.Close()
	to := path
	renamer, ok := fs.(filesystem.Renamer)
	if ok {
		to += ".part"
	}
	w, err := fs.OpenWrite(ctx, to)
	if err != nil {
		return fmt.Errorf("pipeline: %s: %w", path, err)
	}
	_, err = w.Write(data)
	if closeErr := w.Close(); err == nil {
		err = closeErr
	}
	if err == nil && ok {
		err = renamer.Rename(ctx, to, path)
	}
	if remover, canRemove := fs.(filesystem.Remover); err != nil && ok && canRemove {
		remover.Remove(ctx, to)
	}
	if err != nil {
		return fmt.Errorf("pipeline: %s: %w", path, err)
	}
	return nil
}

// bundle returns the model with its encoder, in the form that Mercer's learners restore. q is the posterior, or nil.
func (p Params) bundle(plan *fitPlan, chosen *chosenModel, q *solvers.Posterior) (*modelfile.Bundle, error) {
	enc := &dataset.Encoder{}
	if err := json.Unmarshal(plan.Encoder, enc); err != nil {
		return nil, fmt.Errorf("pipeline: the encoder: %w", err)
	}
	basis, sol := plan.Bases[chosen.Candidate], chosen.Solution
	s := learners.State{
		Learner: p.Learner,
		Params:  map[string]any{"lambda": chosen.Lambda, "intercept": p.Intercept},
		Arrays:  map[string]backend.Host[float64]{"intercept": {Rows: 1, Cols: len(sol.Intercept), Stride: len(sol.Intercept), Data: sol.Intercept}},
	}
	switch basis.Kind {
	case sums.Linear:
		s.Arrays["coef"] = sol.Beta
	case sums.Centers:
		s.Params["kernel"] = basis.Kernel.String()
		s.Arrays["centers"], s.Arrays["beta"] = basis.Points, basis.Coef(sol.Beta)
	case sums.Fourier:
		s.Params["kernel"] = basis.Kernel.String()
		half, t := basis.Points.Rows, sol.Beta.Cols
		scaled := backend.NewHost[float64](2*half, t)
		for i, v := range sol.Beta.Data {
			scaled.Data[i] = basis.Scale * v
		}
		s.Arrays["frequencies"] = basis.Points
		s.Arrays["cosines"], s.Arrays["sines"] = scaled.View(0, 0, half, t), scaled.View(half, 0, half, t)
	}
	if q != nil {
		s.Params["unit_scale"] = q.Unit
		s.Arrays["posterior"] = q.Factors
		s.Arrays["scale"], s.Arrays["quadratic"] = numeric.Row(q.Scale), numeric.Row(q.Quadratic)
		s.Arrays["likelihood"] = numeric.Row([]float64{q.Weight, q.Log, q.Bound, q.ResidualTrace})
		if q.Shift != nil {
			s.Arrays["shift"] = numeric.Row(q.Shift)
		}
	}
	if enc.Labels != nil {
		names, err := json.Marshal(enc.Labels)
		if err != nil {
			return nil, fmt.Errorf("pipeline: %w", err)
		}
		indices := backend.NewHost[float64](1, len(enc.Labels))
		for i := range indices.Data {
			indices.Data[i] = float64(i)
		}
		s.Params["classes"], s.Arrays["labels"] = string(names), indices
	}
	model, err := learners.Restore(s)
	if err != nil {
		return nil, fmt.Errorf("pipeline: %w", err)
	}
	return &modelfile.Bundle{Model: model, Encoder: enc}, nil
}
