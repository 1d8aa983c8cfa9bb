package modelfile

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestBytes checks that Write writes the same bytes as Save, and that Read refuses truncated bytes.
func TestBytes(t *testing.T) {
	b := bundle(t, nil, true)
	path := filepath.Join(t.TempDir(), "m.safetensors")
	if err := Save(path, b); err != nil {
		t.Fatal(err)
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := Write(&out, b); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(out.Bytes(), want) {
		t.Error("Write and Save differ")
	}
	copied, err := Read(bytes.NewReader(want), int64(len(want)))
	if err != nil {
		t.Fatal(err)
	}
	out.Reset()
	if err := Write(&out, copied); err != nil || !bytes.Equal(out.Bytes(), want) {
		t.Errorf("what was read is written as other bytes, %v", err)
	}
	if _, err := Read(bytes.NewReader(want), int64(len(want)-1)); err == nil || !strings.HasPrefix(err.Error(), "modelfile: read: ") {
		t.Errorf("cut short: %v", err)
	}
	if err := Write(&out, Bundle{}); err == nil || !strings.HasPrefix(err.Error(), "modelfile: write: ") {
		t.Errorf("no model: %v", err)
	}
}
