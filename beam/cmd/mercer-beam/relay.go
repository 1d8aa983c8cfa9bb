package main

import (
	"context"
	"errors"
	"io"
	"math"
	"net"
	"strings"
	"time"

	fnpb "github.com/apache/beam/sdks/v2/go/pkg/beam/model/fnexecution_v1"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/util/grpcx"
	"google.golang.org/grpc"
)

// relay passes control messages between a worker and Prism, and puts a prefix before the short names of the
// worker's metrics: Prism (2.77) panics if two workers use a name for metrics of different types.
type relay struct {
	fnpb.UnimplementedBeamFnControlServer
	runner     fnpb.BeamFnControlClient
	id, prefix string
}

// relayed returns the control endpoint for the worker with the given id: a relay to the endpoint of the runner if
// the worker is one of several workers of Prism (pipeline.Params.Workers), otherwise the endpoint itself.
func relayed(id, endpoint string) (string, error) {
	environment := id[strings.LastIndex(id, "_")+1:]
	if !strings.HasPrefix(environment, "go-") {
		return endpoint, nil
	}
	conn, err := grpcx.Dial(context.Background(), endpoint, time.Minute)
	if err != nil {
		return "", err
	}
	listener, err := net.Listen("tcp", "localhost:0")
	if err != nil {
		return "", err
	}
	server := grpc.NewServer(grpc.MaxRecvMsgSize(math.MaxInt32))
	fnpb.RegisterBeamFnControlServer(server, &relay{runner: fnpb.NewBeamFnControlClient(conn), id: id, prefix: environment + "."})
	go server.Serve(listener)
	return listener.Addr().String(), nil
}

// GetProcessBundleDescriptor implements fnpb.BeamFnControlServer.
func (r *relay) GetProcessBundleDescriptor(ctx context.Context, req *fnpb.GetProcessBundleDescriptorRequest) (*fnpb.ProcessBundleDescriptor, error) {
	return r.runner.GetProcessBundleDescriptor(grpcx.WriteWorkerID(ctx, r.id), req)
}

// Control implements fnpb.BeamFnControlServer. When the connection to the worker or to the runner ends, it ends the
// other.
func (r *relay) Control(worker fnpb.BeamFnControl_ControlServer) error {
	ctx, cancel := context.WithCancel(grpcx.WriteWorkerID(worker.Context(), r.id))
	defer cancel()
	runner, err := r.runner.Control(ctx)
	if err != nil {
		return err
	}
	exited := make(chan error, 2)
	go func() { exited <- pass(runner.Recv, worker.Send, r.request) }()
	go func() { exited <- pass(worker.Recv, runner.Send, r.response) }()
	if err := <-exited; !errors.Is(err, io.EOF) {
		return err
	}
	return nil
}

// pass receives messages, applies change to each and sends it, until receiving or sending fails.
func pass[T any](receive func() (T, error), send func(T) error, change func(T)) error {
	for {
		m, err := receive()
		if err != nil {
			return err
		}
		change(m)
		if err := send(m); err != nil {
			return err
		}
	}
}

// request removes the prefix from the short names in a message of the runner.
func (r *relay) request(m *fnpb.InstructionRequest) {
	names := m.GetMonitoringInfos().GetMonitoringInfoId()
	for i := range names {
		names[i] = strings.TrimPrefix(names[i], r.prefix)
	}
}

// response adds the prefix to the short names in a message of the worker.
func (r *relay) response(m *fnpb.InstructionResponse) {
	if p := m.GetProcessBundle(); p != nil {
		p.MonitoringData = prefixed(r.prefix, p.MonitoringData)
	}
	if p := m.GetProcessBundleProgress(); p != nil {
		p.MonitoringData = prefixed(r.prefix, p.MonitoringData)
	}
	if p := m.GetHarnessMonitoringInfos(); p != nil {
		p.MonitoringData = prefixed(r.prefix, p.MonitoringData)
	}
	if p := m.GetMonitoringInfos(); p != nil {
		p.MonitoringInfo = prefixed(r.prefix, p.MonitoringInfo)
	}
}

func prefixed[V any](prefix string, values map[string]V) map[string]V {
	out := make(map[string]V, len(values))
	for name, v := range values {
		out[prefix+name] = v
	}
	return out
}
