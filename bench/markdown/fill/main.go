// Command fill writes the figures of bench/results into pages of Markdown.
//
//	go run ./bench/markdown/fill RESULTS PAGE...
package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/mercer-go/mercer/bench/markdown"
	"github.com/mercer-go/mercer/internal/atomicfile"
)

func main() {
	if len(os.Args) < 3 {
		fmt.Fprintln(os.Stderr, "usage: fill RESULTS PAGE...")
		os.Exit(2)
	}
	if err := run(os.Args[1], os.Args[2:]); err != nil {
		fmt.Fprintln(os.Stderr, "fill:", err)
		os.Exit(1)
	}
}

func run(results string, pages []string) error {
	files, err := markdown.Load(results)
	if err != nil {
		return err
	}
	for _, page := range pages {
		text, err := os.ReadFile(page)
		if err != nil {
			return err
		}
		folder, err := relative(filepath.Dir(page), results)
		if err != nil {
			return err
		}
		filled, err := markdown.Fill(string(text), filepath.ToSlash(folder), files)
		if err != nil {
			return fmt.Errorf("%s: %w", page, err)
		}
		if err := atomicfile.WriteBytes(page, []byte(filled)); err != nil {
			return err
		}
	}
	return nil
}

// relative is the way from one folder to another.
func relative(from, to string) (string, error) {
	from, err := filepath.Abs(from)
	if err != nil {
		return "", err
	}
	if to, err = filepath.Abs(to); err != nil {
		return "", err
	}
	return filepath.Rel(from, to)
}
