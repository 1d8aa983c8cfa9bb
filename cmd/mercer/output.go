package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"

	"github.com/dustin/go-humanize"
	"github.com/spf13/pflag"

	"github.com/mercer-go/mercer/internal/atomicfile"
)

// size is a flag whose value is a number of bytes: 8GB, 512MiB or a number without a unit.
type size int64

func (s *size) Set(text string) error {
	n, err := humanize.ParseBytes(text)
	if err == nil && n > math.MaxInt64 || err != nil && strings.HasPrefix(err.Error(), "too large") {
		return fmt.Errorf("%q is too large: at most 8 EiB can be given", text)
	}
	if err != nil || n == 0 {
		return fmt.Errorf("want a size such as 8GB, 512MiB or 1000000, got %q", text)
	}
	*s = size(n)
	return nil
}

// mebibytes returns the number of MiB in a size. A number without a unit is returned unchanged.
func mebibytes(text string) (string, error) {
	if _, err := strconv.ParseFloat(text, 64); err == nil || errors.Is(err, strconv.ErrRange) {
		return text, nil
	}
	var s size
	if err := s.Set(text); err != nil {
		return "", fmt.Errorf("want a number of MiB, or a size such as 2GiB, got %q", text)
	}
	return exact(float64(s) / (1 << 20)), nil
}

func (s *size) Type() string { return "size" }

func (s *size) String() string {
	if *s == 0 {
		return ""
	}
	return humanBytes(int64(*s))
}

// minInt is the value of an integer flag that has a minimum.
type minInt struct {
	target   *int
	minValue int
}

func intFlag(flags *pflag.FlagSet, value *int, name string, defaultValue, minValue int, help string) {
	*value = defaultValue
	flags.Var(minInt{value, minValue}, name, help)
}

func (l minInt) Type() string { return "int" }

func (l minInt) String() string {
	if l.target == nil { // package pflag calls String on a zero value
		return ""
	}
	return strconv.Itoa(*l.target)
}

func (l minInt) Set(text string) error {
	v, err := strconv.ParseInt(text, 0, 64)
	if err != nil {
		return err
	}
	if v < int64(l.minValue) {
		return fmt.Errorf("must be ≥ %d, got %d", l.minValue, v)
	}
	*l.target = int(v)
	return nil
}

func humanBytes(n int64) string { return humanize.IBytes(uint64(max(n, 0))) }

// exact formats a number with the fewest digits that read back as the same number.
func exact(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) }

// fourDigits formats a number with four significant digits.
func fourDigits(v float64) string { return strconv.FormatFloat(v, 'g', 4, 64) }

// seconds formats a time in seconds. Times below one second are printed in milliseconds.
func seconds(s float64) string {
	switch {
	case s < 1:
		return fmt.Sprintf("%.1f ms", 1000*s)
	case s < 10:
		return fmt.Sprintf("%.2f s", s)
	}
	return fmt.Sprintf("%.1f s", s)
}

// printJSONOrText prints v as a JSON object if --json is given, and otherwise the result of text.
func (a *app) printJSONOrText(ctx context.Context, v any, text func() string) error {
	if !a.json {
		return a.print(ctx, text())
	}
	b, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return err
	}
	return a.print(ctx, string(b)+"\n")
}

// print writes the whole standard output at once.
func (a *app) print(ctx context.Context, text string) error {
	return a.commit(ctx, func() error {
		if _, err := io.WriteString(&a.stdout, text); err != nil {
			return fmt.Errorf("standard output: %w", err)
		}
		return nil
	})
}

// writeFile writes a file to the path that a flag gave, completely or not at all.
func (a *app) writeFile(ctx context.Context, flag, path string, data []byte) error {
	return a.commit(ctx, func() error {
		if err := atomicfile.WriteBytes(path, data); err != nil {
			return fmt.Errorf("%s: %w", flag, err)
		}
		return nil
	})
}
