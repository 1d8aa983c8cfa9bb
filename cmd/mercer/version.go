package main

import (
	"context"
	"fmt"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

// version is the output of `mercer version`.
type version struct {
	Version  string `json:"version"`
	Revision string `json:"revision,omitempty"`
	Modified bool   `json:"modified,omitempty"`
	Go       string `json:"go"`
	Platform string `json:"platform"`
	Build    string `json:"build"` // "static" if built with the tag static, which opens no shared libraries; otherwise "dynamic"
}

func readVersion() version {
	v := version{Version: "unknown", Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH, Build: "dynamic"}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return v
	}
	v.Version = info.Main.Version
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			v.Revision = s.Value
		case "-tags":
			if slices.Contains(strings.Split(s.Value, ","), "static") {
				v.Build = "static"
			}
		case "vcs.modified":
			v.Modified = s.Value == "true"
		}
	}
	return v
}

func (v version) text() string {
	revision := v.Revision
	if revision != "" && v.Modified {
		revision += "+changes"
	}
	text := "mercer " + v.Version
	switch {
	case revision != "" && v.Version == "(devel)": // the command was built in a clone of the repository
		text = "mercer " + revision
	case revision != "":
		text += " " + revision
	}
	return fmt.Sprintf("%s %s %s %s\n", text, v.Go, v.Platform, v.Build)
}

func (a *app) versionCommand() *cobra.Command {
	return withoutDevice(&cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Args:  maxArgs(0),
		RunE: a.work(func(ctx context.Context, _ []string) error {
			v := readVersion()
			return a.printJSONOrText(ctx, v, v.text)
		}),
	})
}
