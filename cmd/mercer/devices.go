package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/internal/texttable"
)

// openDevice calls backend.Open. An unknown name is a usage error; a device that this machine lacks is a failure.
func openDevice(name string, c backend.Config) (backend.Device, error) {
	dev, err := backend.Open(name, c)
	if err != nil && errors.Is(err, backend.ErrUnavailable) && name != "" && !knownDevice(name) {
		return nil, usagef("--device: %s", oneLine(err))
	}
	return dev, err
}

// checkMemory returns an error if --memory exceeds the memory of this machine.
func (a *app) checkMemory() error {
	if a.memory == 0 {
		return nil
	}
	var maxMemory int64
	for _, s := range backend.Report() {
		if s.Err == nil {
			maxMemory = max(maxMemory, s.Info.Memory)
		}
	}
	// Info.Memory is 80 % of the memory that the process may use. On systems other than Linux it may be a guess.
	if maxMemory = maxMemory / 8 * 10; runtime.GOOS == "linux" && int64(a.memory) > maxMemory {
		return usagef("--memory: %s is more than the %s that this process may use", humanBytes(int64(a.memory)), humanBytes(maxMemory))
	}
	return nil
}

func knownDevice(name string) bool {
	name = strings.ToLower(name)
	for _, s := range backend.Report() {
		driver, _, _ := strings.Cut(s.Device, "/")
		if name == "auto" || name == s.Device || name == driver {
			return true
		}
	}
	return false
}

// deviceLine is a row of the output of `mercer devices`.
type deviceLine struct {
	Device      string `json:"device"`
	Usable      bool   `json:"usable"`
	Chosen      bool   `json:"chosen"`
	Processor   string `json:"processor"`
	Instruction string `json:"instruction"`
	Threads     int    `json:"threads"`
	MemoryBytes int64  `json:"memory_bytes"`
	Reason      string `json:"reason,omitempty"`    // why the device is not usable
	Libraries   string `json:"libraries,omitempty"` // the libraries that the device uses
	Missing     string `json:"missing,omitempty"`   // other libraries that the device could use
}

func (a *app) devicesCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "devices",
		Short: "List the devices, and why some cannot be used",
		Args:  maxArgs(0),
		RunE:  a.work(func(ctx context.Context, _ []string) error { return a.devices(ctx) }),
	}
}

func (a *app) devices(ctx context.Context) error {
	chosen := ""
	dev, failure := a.open()
	if errors.As(failure, new(usageError)) {
		return failure
	}
	if failure == nil {
		chosen = dev.Info().Device
		defer dev.Close()
	}
	var lines []deviceLine
	for _, s := range backend.Report() {
		l := deviceLine{
			Device:      s.Device,
			Usable:      s.Err == nil,
			Chosen:      s.Device == chosen,
			Processor:   s.Info.Processor,
			Instruction: s.Info.Instruction,
			Threads:     s.Info.Threads,
			MemoryBytes: s.Info.Memory,
			Libraries:   s.Info.Libraries,
			Missing:     s.Info.Missing,
		}
		if s.Err != nil {
			l.Reason = oneLine(s.Err)
		}
		if l.Chosen { // the device was opened with the flags of the call
			l.Libraries, l.Missing = dev.Info().Libraries, dev.Info().Missing
			l.Threads, l.MemoryBytes = dev.Info().Threads, dev.Info().Memory
		}
		lines = append(lines, l)
	}
	err := a.printJSONOrText(ctx, map[string]any{"devices": lines}, func() string { return devicesTable(lines) })
	return errors.Join(err, failure)
}

func devicesTable(lines []deviceLine) string {
	rows := [][]string{{"", "device", "instructions", "threads", "memory", "processor"}}
	for _, l := range lines {
		mark := ""
		if l.Chosen {
			mark = "*"
		}
		if !l.Usable {
			rows = append(rows, []string{mark, l.Device, l.Instruction, "-", "-", "not here: " + l.Reason})
			continue
		}
		threads := "-"
		if l.Threads > 0 {
			threads = strconv.Itoa(l.Threads)
		}
		rows = append(rows, []string{mark, l.Device, l.Instruction, threads, humanBytes(l.MemoryBytes), l.Processor})
	}
	text := texttable.Format("lllrrl", rows)
	for _, l := range lines {
		if l.Usable && l.Libraries != "" {
			text += fmt.Sprintf("%s works with: %s\n", l.Device, l.Libraries)
		}
		if l.Usable && l.Missing != "" {
			text += fmt.Sprintf("%s lacks %s\n", l.Device, l.Missing)
		}
	}
	if name := os.Getenv(backend.EnvDevice); name != "" {
		text += fmt.Sprintf("%s=%s is used where no --device is given\n", backend.EnvDevice, name)
	}
	if value := os.Getenv(backend.EnvReproducible); value != "" {
		text += fmt.Sprintf("%s=%s is used where --reproducible is not given\n", backend.EnvReproducible, value)
	}
	return text + "* would be used\n"
}
