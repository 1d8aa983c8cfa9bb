package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/apache/beam/sdks/v2/go/container/tools"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/util/grpcx"
)

// bootFlags are the flags that a runner passes when it starts this program as a worker process, with
// --environment_type PROCESS. This program then does the work of the boot program of Beam's container: it requests
// the other settings from the runner.
type bootFlags struct {
	provision string
	flags     *flag.FlagSet
}

func addBoot(flags *flag.FlagSet) *bootFlags {
	b := &bootFlags{flags: flags}
	flags.StringVar(&b.provision, "provision_endpoint", "", "set by a runner when it starts a worker")
	return b
}

// isWorker reports whether a runner started this process as a worker.
func (b *bootFlags) isWorker() bool { return b.provision != "" }

// endWithParent ends this process soon after its parent process ends, if this process is a worker or has started a
// worker.
func (b *bootFlags) endWithParent() {
	if !b.isWorker() && b.flags.Lookup("worker").Value.String() != "true" {
		return
	}
	parent := os.Getppid()
	go func() {
		for os.Getppid() == parent {
			time.Sleep(200 * time.Millisecond)
		}
		os.Exit(1)
	}()
}

// patience is the time for which a process waits after its worker was lost. If the process ends at the moment at
// which Prism (2.77) notices the lost connection, Prism may wait forever.
const patience = 20 * time.Second

// start runs the worker as a separate process and waits for it.
func (b *bootFlags) start() error {
	id := strings.Trim(b.flags.Lookup("id").Value.String(), "'") // Prism writes the id in quotation marks
	if id == "" {
		return errors.New("a worker needs --id")
	}
	info, err := tools.ProvisionInfo(grpcx.WriteWorkerID(context.Background(), id), b.provision)
	if err != nil {
		return fmt.Errorf("worker %s: %w", id, err)
	}
	options, err := tools.ProtoToJSON(info.GetPipelineOptions())
	if err != nil {
		return fmt.Errorf("worker %s: %w", id, err)
	}
	logging, control := info.GetLoggingEndpoint().GetUrl(), info.GetControlEndpoint().GetUrl()
	if logging == "" || control == "" {
		return fmt.Errorf("worker %s: the runner names no endpoints for logging and control", id)
	}
	if control, err = relayed(id, control); err != nil {
		return fmt.Errorf("worker %s: %w", id, err)
	}
	executable, err := os.Executable()
	if err != nil {
		return err
	}
	worker := exec.Command(executable, "--worker=true", "--id="+id, "--logging_endpoint="+logging, "--control_endpoint="+control, "--options="+options)
	worker.Env = append(os.Environ(), "RUNNER_CAPABILITIES="+strings.Join(info.GetRunnerCapabilities(), " "), "STATUS_ENDPOINT="+info.GetStatusEndpoint().GetUrl())
	worker.Stdout, worker.Stderr = os.Stdout, os.Stderr
	if err := worker.Run(); err != nil {
		time.Sleep(patience)
		return fmt.Errorf("worker %s: %w", id, err)
	}
	return nil
}
