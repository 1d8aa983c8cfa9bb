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

// bootFlags are what a runner gives to a process that is to be a worker
// (--environment_type PROCESS with this program as the command): the boot part of
// Beam's container, which asks the runner for the rest, for a program that need not
// be fetched.
type bootFlags struct {
	provision string
	flags     *flag.FlagSet
}

func addBoot(flags *flag.FlagSet) *bootFlags {
	b := &bootFlags{flags: flags}
	flags.StringVar(&b.provision, "provision_endpoint", "", "of a runner, which gives it to its workers")
	return b
}

// asked reports whether this process is to be a worker.
func (b *bootFlags) asked() bool { return b.provision != "" }

// endWithParent ends this process, if it is a worker or has started one, soon after
// the process that started it: a runner that ends with its program kills the first of
// the two at best.
func (b *bootFlags) endWithParent() {
	if !b.asked() && b.flags.Lookup("worker").Value.String() != "true" {
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

// patience is how long a process stays whose worker was lost. Prism (2.77) takes note
// of a worker's connection that breaks, and ends its job; but where the process that
// it has started ends at the same time it may forget about the work that was under
// way, and wait for ever.
const patience = 20 * time.Second

// start runs the worker as a process of its own and waits for it.
func (b *bootFlags) start() error {
	id := strings.Trim(b.flags.Lookup("id").Value.String(), "'") // Prism quotes it
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
	self, err := os.Executable()
	if err != nil {
		return err
	}
	worker := exec.Command(self, "--worker=true", "--id="+id, "--logging_endpoint="+logging, "--control_endpoint="+control, "--options="+options)
	worker.Env = append(os.Environ(), "RUNNER_CAPABILITIES="+strings.Join(info.GetRunnerCapabilities(), " "), "STATUS_ENDPOINT="+info.GetStatusEndpoint().GetUrl())
	worker.Stdout, worker.Stderr = os.Stdout, os.Stderr
	if err := worker.Run(); err != nil {
		time.Sleep(patience)
		return fmt.Errorf("worker %s: %w", id, err)
	}
	return nil
}
