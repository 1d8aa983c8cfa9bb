package modelfile

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/internal/required"
	"github.com/mercer-go/mercer/internal/safetensors"
	"github.com/mercer-go/mercer/kernels"
)

// loadBytes reads data as the contents of a file.
func loadBytes(data []byte) (Bundle, error) { return read(bytes.NewReader(data), int64(len(data))) }

// TestTruncated checks that every prefix of a file, and a file with an extra byte, is refused.
func TestTruncated(t *testing.T) {
	data := savedBytes(t, bundle(t, nil, true))
	for n := range data {
		if _, err := loadBytes(data[:n]); err == nil || strings.Contains(err.Error(), "\n") {
			t.Fatalf("the first %d bytes of %d: %v", n, len(data), err)
		}
	}
	if _, err := loadBytes(append(data, 0)); err == nil {
		t.Error("one byte too many was accepted")
	}
}

// TestChangedByte checks that a change of any byte is detected, unless it replaces white space by white space.
func TestChangedByte(t *testing.T) {
	for name, b := range map[string]Bundle{"ridge": bundle(t, nil, false), "kernel ridge": bundle(t, kernels.Gaussian{Sigma: 1}, true)} {
		data := savedBytes(t, b)
		header := 8 + int(binary.LittleEndian.Uint64(data))
		spaces := 0
		for i, original := range data {
			for _, changed := range required.Subset(5, []byte{original ^ 1, original ^ 2, original ^ 4, original ^ 8, original ^ 16, original ^ 32, original ^ 64, original ^ 128, 0, ' ', '\t', '0', '"', '}', 'E', 0xff}) {
				if changed == original {
					continue
				}
				data[i] = changed
				got, err := loadBytes(data)
				if err == nil {
					if i < 8 || i >= header || original != ' ' || !strings.ContainsRune(" \t\r\n", rune(changed)) {
						t.Errorf("%s: byte %d of %d changed from %q to %q: accepted", name, i, len(data), original, changed)
					}
					if diff := sameBundle(b, got); diff != "" {
						t.Errorf("%s: byte %d changed from %q to %q: another model: %s", name, i, original, changed, diff)
					}
					spaces++
				} else if strings.Contains(err.Error(), "\n") {
					t.Errorf("%s: byte %d: the error has several lines: %q", name, i, err)
				}
			}
			data[i] = original
		}
		t.Logf("%s: %d bytes, %d changes of a space", name, len(data), spaces)
	}
}

// file returns a file with the given metadata and arrays and a valid checksum.
func file(metadata map[string]string, arrays map[string]backend.Host[float64]) []byte {
	list := safetensors.Layout(arrays)
	sum := newChecksum(metadata, list)
	safetensors.WriteArrays(sum, list, arrays)
	withChecksum := map[string]string{"sha256": hex.EncodeToString(sum.Sum(nil))}
	for k, v := range metadata {
		withChecksum[k] = v
	}
	var b bytes.Buffer
	head, err := safetensors.MarshalHeader(withChecksum, list)
	if err != nil {
		panic(err)
	}
	b.Write(head)
	safetensors.WriteArrays(&b, list, arrays)
	return b.Bytes()
}

// raw returns a file with the given text as its header, followed by the given number of zero bytes.
func raw(header string, data int) []byte {
	b := binary.LittleEndian.AppendUint64(nil, uint64(len(header)))
	return append(append(b, header...), make([]byte, data)...)
}

// validHeader returns a header with valid metadata. The argument is the text of the entries for the arrays.
func validHeader(arrays string) string {
	return `{"__metadata__":{"format":"mercer","version":"1"}` + arrays + `}`
}

func TestRefused(t *testing.T) {
	row := func(v ...float64) backend.Host[float64] {
		return backend.Host[float64]{Rows: 1, Cols: len(v), Stride: len(v), Data: v}
	}
	arrays := func(v float64) map[string]backend.Host[float64] {
		return map[string]backend.Host[float64]{"coef": row(v), "intercept": row(0)}
	}
	metadata := func(change ...string) map[string]string {
		m := map[string]string{"format": "mercer", "version": "1", "learner": "ridge", "model": `{"lambda":1,"intercept":true}`}
		for i := 0; i < len(change); i += 2 {
			m[change[i]] = change[i+1]
		}
		return m
	}
	if _, err := loadBytes(file(metadata(), arrays(1))); err != nil {
		t.Fatalf("the file that the others are changed from: %v", err)
	}
	maxLength := binary.LittleEndian.AppendUint64(nil, math.MaxUint64)
	for _, test := range []struct {
		name string
		data []byte
		want string
	}{
		{"nothing", nil, "is empty"},
		{"a few bytes", []byte("abc"), "is truncated: 3 bytes are too few"},
		{"a text", []byte("size,price\n1,2\n3,4\n"), "is not a model file"},
		{"zeros", make([]byte, 100), "is not a model file"},
		{"a huge header", append(maxLength, "{}"...), "is not a model file"},
		{"a header of 100 MB", append(binary.LittleEndian.AppendUint64(nil, 99_999_999), "{}"...), "is truncated: its header has 99999999 bytes, of which the file contains 2"},
		{"no JSON", raw("{no}", 0), "is damaged: its header"},
		{"no end", raw(`{"a":1`, 0), "is damaged: its header: the JSON ends too early"},
		{"not UTF-8", raw("{\"\xff\":1}", 0), "is damaged: its header is not UTF-8"},
		{"two objects", raw("{}{}", 0), "there is text after the JSON object"},
		{"deep nesting", raw(`{"a":`+strings.Repeat("[", 20000), 0), "is damaged: its header"},
		{"another's file", raw(`{"w":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}`, 4), "is a safetensors file, but not a model of mercer: its metadata contain no format"},
		{"another's metadata", raw(`{"__metadata__":{"format":"pt"},"w":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}`, 4), `not a model of mercer: its format is "pt"`},
		{"metadata of numbers", raw(`{"__metadata__":{"format":1}}`, 0), `is damaged: its metadata: "format" is not a string`},
		{"metadata null", raw(`{"__metadata__":null}`, 0), "is damaged: its metadata"},
		{"two formats", raw(`{"__metadata__":{"format":"mercer","format":"mercer"}}`, 0), `"format" occurs twice`},
		{"newer", file(metadata("version", "2"), arrays(1)), "was made by a newer mercer: its version is 2, but this mercer reads only versions up to 1: update mercer"},
		{"no version", raw(`{"__metadata__":{"format":"mercer"}}`, 0), `its version is ""`},
		{"version 0", file(metadata("version", "0"), arrays(1)), `its version is "0"`},
		{"version 01", file(metadata("version", "01"), arrays(1)), `its version is "01"`},
		{"no checksum", raw(validHeader(""), 0), "does not match its checksum"},
		{"another type", raw(validHeader(`,"w":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}`), 4), `array "w": its type is "F32", but only F64 can be read`},
		{"type null", raw(validHeader(`,"w":{"dtype":null,"shape":[1],"data_offsets":[0,8]}`), 8), "its type is null"},
		{"unknown field", raw(validHeader(`,"w":{"Dtype":"F64","shape":[1],"data_offsets":[0,8]}`), 8), `"Dtype" is unknown`},
		{"field twice", raw(validHeader(`,"w":{"dtype":"F64","shape":[1],"shape":[1],"data_offsets":[0,8]}`), 8), `"shape" occurs twice`},
		{"array twice", raw(validHeader(strings.Repeat(`,"w":{"dtype":"F64","shape":[1],"data_offsets":[0,8]}`, 2)), 8), `"w" occurs twice`},
		{"field missing", raw(validHeader(`,"w":{"dtype":"F64","shape":[1]}`), 8), "is missing"},
		{"shape null", raw(validHeader(`,"w":{"dtype":"F64","shape":null,"data_offsets":[0,8]}`), 8), "an array of integers was expected"},
		{"shape of null", raw(validHeader(`,"w":{"dtype":"F64","shape":[null],"data_offsets":[0,0]}`), 0), "an array of integers ≥ 0"},
		{"negative shape", raw(validHeader(`,"w":{"dtype":"F64","shape":[-1,-1],"data_offsets":[0,8]}`), 8), "an array of integers ≥ 0"},
		{"broken shape", raw(validHeader(`,"w":{"dtype":"F64","shape":[1.5],"data_offsets":[0,8]}`), 8), "an array of integers was expected"},
		{"shape overflows", raw(validHeader(`,"w":{"dtype":"F64","shape":[4294967296,536870912],"data_offsets":[0,0]}`), 0), "the product of its dimensions overflows"},
		{"large shape", raw(validHeader(`,"w":{"dtype":"F64","shape":[1000000,1000000],"data_offsets":[0,8000000000000]}`), 8), "it has 8 bytes of data, but its header describes 8000000000000"},
		{"three offsets", raw(validHeader(`,"w":{"dtype":"F64","shape":[1],"data_offsets":[0,8,8]}`), 8), "is missing or incomplete"},
		{"offsets and shape", raw(validHeader(`,"w":{"dtype":"F64","shape":[2],"data_offsets":[0,8]}`), 8), "its shape needs 16 bytes"},
		{"offsets backwards", raw(validHeader(`,"w":{"dtype":"F64","shape":[1],"data_offsets":[8,0]}`), 8), "its offsets are 8 and 0"},
		{"gap", raw(validHeader(`,"w":{"dtype":"F64","shape":[1],"data_offsets":[8,16]}`), 16), "begins at byte 8 of the data, not at 0"},
		{"overlap", raw(validHeader(`,"v":{"dtype":"F64","shape":[2],"data_offsets":[0,16]},"w":{"dtype":"F64","shape":[2],"data_offsets":[8,24]}`), 24), "begins at byte 8 of the data, not at 16"},
		{"data left over", raw(validHeader(""), 8), "it has 8 bytes of data, but its header describes 0"},
		{"rank 1", raw(validHeader(`,"w":{"dtype":"F64","shape":[1],"data_offsets":[0,8]}`), 8), "has rank 1, not 2"},
		{"NaN", file(metadata(), arrays(math.NaN())), `cannot be used: learners: restore: ridge: array "coef": row 1, column 1 is NaN`},
		{"Inf", file(metadata(), arrays(math.Inf(1))), `array "coef": row 1, column 1 is +Inf`},
		{"no elements", file(metadata(), map[string]backend.Host[float64]{"coef": {Rows: 0, Cols: 5, Stride: 5}, "intercept": row(0)}), `array "coef" has the shape 0×5`},
		{"no arrays", file(metadata(), nil), `array "coef" is missing`},
		{"unknown learner", file(metadata("learner", "oracle"), arrays(1)), `no learner is called "oracle"`},
		{"bad parameters", file(metadata("model", "{"), arrays(1)), "cannot be used: its parameters"},
		{"parameters null", file(metadata("model", "null"), arrays(1)), `parameter "lambda" is missing`},
		{"lambda of text", file(metadata("model", `{"lambda":"1","intercept":true}`), arrays(1)), `parameter "lambda" is a string`},
		{"unknown kernel", file(metadata("learner", "kernel-ridge", "model", `{"kernel":"gausian(sigma=1)","lambda":1,"intercept":true}`), arrays(1)), "gausian"},
		{"bad encoder", file(metadata("encoder", "{"), arrays(1)), "cannot be used: its encoder"},
		{"unknown encoder", file(metadata("encoder", `{"magic":1}`), arrays(1)), "cannot be used: its encoder"},
		{"empty encoder", file(metadata("encoder", `{}`), arrays(1)), "cannot be used: dataset: encoder"},
		{"another encoder", file(metadata("encoder", `{"inputs":[{"name":"a","number":{"fill":0,"mean":0,"scale":1}},{"name":"b","number":{"fill":0,"mean":0,"scale":1}}],"outputs":["y"]}`), arrays(1)),
			"the encoder makes 2 features, but the model takes 1"},
		{"encoder without target", file(metadata("encoder", `{"inputs":[{"name":"a","number":{"fill":0,"mean":0,"scale":1}}],"outputs":[]}`), arrays(1)),
			"the encoder makes 0 targets, but the model has 1 output"},
	} {
		t.Run(test.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "m.safetensors")
			if err := os.WriteFile(path, test.data, 0o600); err != nil {
				t.Fatal(err)
			}
			b, err := Load(path)
			if err == nil || b.Model != nil || b.Encoder != nil {
				t.Fatalf("loaded: %+v, %v", b, err)
			}
			text := err.Error()
			if !strings.HasPrefix(text, "modelfile: "+path+": ") || !strings.Contains(text, test.want) || strings.Contains(text, "\n") || strings.Count(text, path) != 1 {
				t.Errorf("got  %q\nwant %q", text, test.want)
			}
		})
	}
}

// TestAllocation checks that reading a file takes no more memory than a small multiple of its size.
func TestAllocation(t *testing.T) {
	for _, data := range [][]byte{
		append(binary.LittleEndian.AppendUint64(nil, 100_000_000), "{}"...),
		raw(validHeader(`,"w":{"dtype":"F64","shape":[1000000000,1],"data_offsets":[0,8000000000]}`), 8),
		raw(validHeader(`,"w":{"dtype":"F64","shape":[0,9223372036854775807],"data_offsets":[0,0]}`), 0),
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		if _, err := loadBytes(data); err == nil {
			t.Error("loaded")
		}
		runtime.ReadMemStats(&after)
		// The limit allows the buffers of the reader, 64 KiB, and allocations by the runtime.
		if allocated := after.TotalAlloc - before.TotalAlloc; allocated > 1<<20 {
			t.Errorf("%d bytes of file took %d bytes of memory", len(data), allocated)
		}
	}
}

func FuzzRead(f *testing.F) {
	for _, b := range bundles(f) {
		f.Add(savedBytes(f, b))
	}
	f.Add(raw(validHeader(`,"w":{"dtype":"F64","shape":[1,1],"data_offsets":[0,8]}`), 8))
	f.Fuzz(func(t *testing.T, data []byte) {
		b, err := loadBytes(data)
		if err != nil {
			if strings.Contains(err.Error(), "\n") {
				t.Errorf("the error has several lines: %q", err)
			}
			return
		}
		reloaded, err := loadBytes(savedBytes(t, b))
		if err != nil {
			t.Fatalf("loaded, saved, not loaded: %v", err)
		}
		if diff := sameBundle(b, reloaded); diff != "" {
			t.Error(diff)
		}
	})
}
