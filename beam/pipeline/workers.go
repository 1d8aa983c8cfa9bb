package pipeline

import (
	"context"
	"fmt"
	"net"
	"strings"

	"github.com/apache/beam/sdks/v2/go/pkg/beam"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/core/runtime/graphx"
	pipepb "github.com/apache/beam/sdks/v2/go/pkg/beam/model/pipeline_v1"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/options/jobopts"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/runners/prism"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/runners/universal/extworker"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/runners/universal/runnerlib"
)

// workerScope returns the name of the scope of the steps that worker k, counted from 0, executes.
func workerScope(k int) string { return fmt.Sprintf("worker %d", k+1) }

// takeFn emits every Workers-th piece.
type takeFn struct{ Worker, Workers int }

func (f *takeFn) ProcessElement(p filePiece, emit func(filePiece)) {
	if p.Number%f.Workers == f.Worker {
		emit(p)
	}
}

// spread passes all pieces to apply, or the pieces of each worker in a separate call if Params.Workers is above 1.
// It returns the elements of all results.
func spread(s beam.Scope, p Params, pieces beam.PCollection, apply func(s beam.Scope, pieces beam.PCollection) beam.PCollection) beam.PCollection {
	if p.Workers <= 1 {
		return apply(s, pieces)
	}
	var results []beam.PCollection
	for k := range p.Workers {
		s := s.Scope(workerScope(k))
		results = append(results, apply(s, beam.ParDo(s, &takeFn{k, p.Workers}, pieces)))
	}
	return beam.Flatten(s, results...)
}

// separate copies the environment of the pipeline p for each worker, and assigns the transforms in the scope of a
// worker to that worker's copy. The runner then starts one worker for each copy.
func separate(p *pipepb.Pipeline, workers int) error {
	components := p.GetComponents()
	if len(components.GetEnvironments()) != 1 {
		return fmt.Errorf("pipeline: workers: the pipeline has %d environments, want one", len(components.GetEnvironments()))
	}
	var envID string
	for envID = range components.GetEnvironments() {
	}
	env := components.GetEnvironments()[envID]
	for k := range workers {
		name := fmt.Sprintf("%s-%d", envID, k+1)
		components.Environments[name] = &pipepb.Environment{ // the copies share Dependencies, which Beam changes later
			Urn: env.GetUrn(), Payload: env.GetPayload(), DisplayData: env.GetDisplayData(), Capabilities: env.GetCapabilities(),
			Dependencies: env.GetDependencies(), ResourceHints: env.GetResourceHints(),
		}
		var assign func(id string, inScope bool)
		assign = func(id string, inScope bool) {
			t := components.GetTransforms()[id]
			inScope = inScope || t.GetUniqueName() == workerScope(k) || strings.HasSuffix(t.GetUniqueName(), "/"+workerScope(k))
			if inScope && t.GetEnvironmentId() != "" {
				t.EnvironmentId = name
			}
			for _, sub := range t.GetSubtransforms() {
				assign(sub, inScope)
			}
		}
		for _, id := range p.GetRootTransformIds() {
			assign(id, false)
		}
	}
	return nil
}

// execute runs the pipeline on the runner. With several workers it repeats the steps of beam.Run for portable runners.
func execute(ctx context.Context, runner string, pipe *beam.Pipeline, workers int) (beam.PipelineResult, error) {
	if workers <= 1 {
		return beam.Run(ctx, runner, pipe)
	}
	switch strings.ToLower(runner) {
	case "prism", "prismrunner":
		if *jobopts.Endpoint == "" {
			endpoint, err := jobServer()
			if err != nil {
				return nil, err
			}
			*jobopts.Endpoint = endpoint
		}
		if *jobopts.EnvironmentType == "" {
			*jobopts.EnvironmentType = "loopback"
		}
	case "universal", "portable", "portablerunner", "flink", "spark":
	default:
		return nil, fmt.Errorf("pipeline: workers: the runner %s chooses its own number of workers", runner)
	}
	endpoint, err := jobopts.GetEndpoint()
	if err != nil {
		return nil, err
	}
	edges, _, err := pipe.Build()
	if err != nil {
		return nil, err
	}
	config := jobopts.GetEnvironmentConfig
	if jobopts.IsLoopback() {
		pool, err := extworker.StartLoopback(ctx, 0)
		if err != nil {
			return nil, err
		}
		defer pool.Stop(ctx)
		config = pool.EnvironmentConfig
	}
	env, err := graphx.CreateEnvironment(ctx, jobopts.GetEnvironmentUrn(ctx), config)
	if err != nil {
		return nil, err
	}
	p, err := graphx.Marshal(edges, &graphx.Options{Environment: env, PipelineResourceHints: jobopts.GetPipelineResourceHints()})
	if err != nil {
		return nil, err
	}
	if err := separate(p, workers); err != nil {
		return nil, err
	}
	return runnerlib.Execute(ctx, p, endpoint, &runnerlib.JobOptions{
		Name: jobopts.GetJobName(), Experiments: jobopts.GetExperiments(), Worker: *jobopts.WorkerBinary,
		RetainDocker: *jobopts.RetainDockerContainers, Parallelism: *jobopts.Parallelism, Loopback: jobopts.IsLoopback(),
	}, false)
}

// jobServer starts Prism's job server in this process and returns its address.
func jobServer() (string, error) {
	listener, err := net.Listen("tcp", "localhost:0")
	if err != nil {
		return "", fmt.Errorf("pipeline: %w", err)
	}
	port := listener.Addr().(*net.TCPAddr).Port
	listener.Close()
	if _, err := prism.CreateJobServer(context.Background(), prism.Options{Port: port}); err != nil {
		return "", fmt.Errorf("pipeline: %w", err)
	}
	return fmt.Sprintf("localhost:%d", port), nil
}
