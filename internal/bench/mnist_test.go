package bench

import (
	"bytes"
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestMNIST measures the fits on four files of small images. The digit of an image is the position of its only
// bright pixel, so that every implementation must classify all test images correctly.
func TestMNIST(t *testing.T) {
	folder := t.TempDir()
	write := func(name string, magic uint32, shape []uint32, data []byte) {
		var b bytes.Buffer
		for _, v := range append([]uint32{magic}, shape...) {
			b.Write(binary.BigEndian.AppendUint32(nil, v))
		}
		b.Write(data)
		if err := os.WriteFile(filepath.Join(folder, name), b.Bytes(), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	for prefix, n := range map[string]int{"train": 60, "t10k": 20} {
		var images, labels []byte
		for i := range n {
			image := make([]byte, 4*4)
			image[i%10], image[15] = 255, byte(i)
			images, labels = append(images, image...), append(labels, byte(i%10))
		}
		write(prefix+"-images-idx3-ubyte", 0x803, []uint32{uint32(n), 4, 4}, images)
		write(prefix+"-labels-idx1-ubyte", 0x801, []uint32{uint32(n)}, labels)
	}
	b := Benchmark{Kind: MNISTKind, Images: folder, Sizes: []int{60}, Centers: 40}
	if testing.Short() {
		b.Peers = []string{} // save the seconds of starting scikit-learn
	}
	r, err := b.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Cells) != 3 {
		t.Fatalf("%d cases, want 3", len(r.Cells))
	}
	for _, cell := range r.Cells {
		for _, run := range cell.Runs {
			if run.Reason != "" { // scikit-learn may be missing
				t.Logf("%v: %s: %s", cell.Case, run.Implementation, run.Reason)
				continue
			}
			if errorRate, ok := run.Metrics[errorMetric]; !ok || errorRate != 0 || run.Metrics[predictMetric] <= 0 {
				t.Errorf("%v: %s: metrics %v", cell.Case, run.Implementation, run.Metrics)
			}
		}
	}
	report, err := r.Report()
	if err != nil {
		t.Fatal(err)
	}
	if titles := report.Text(); !strings.Contains(titles, "fraction of wrong predictions") || !strings.Contains(titles, "time of predicting") {
		t.Errorf("tables are missing:\n%s", titles)
	}
	for _, b := range []Benchmark{{Kind: MNISTKind}, {Kind: MNISTKind, Images: t.TempDir()}, {Kind: MNISTKind, Images: folder, Sizes: []int{61}}, {Kind: FitKind, Images: folder}} {
		var option *OptionError
		if _, err := b.Run(t.Context()); !errors.As(err, &option) || !slices.Contains([]string{"images", "n"}, option.Option) {
			t.Errorf("%+v: %v", b, err)
		}
	}
}
