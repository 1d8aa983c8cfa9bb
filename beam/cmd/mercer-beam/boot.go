package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"strings"
	"syscall"

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

// asked tells whether this process is to be a worker.
func (b *bootFlags) asked() bool { return b.provision != "" }

// start becomes the worker, and comes back with an error only.
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
	os.Setenv("RUNNER_CAPABILITIES", strings.Join(info.GetRunnerCapabilities(), " "))
	os.Setenv("STATUS_ENDPOINT", info.GetStatusEndpoint().GetUrl())
	return syscall.Exec(self, []string{self, "--worker=true", "--id=" + id, "--logging_endpoint=" + logging, "--control_endpoint=" + control, "--options=" + options}, os.Environ())
}
