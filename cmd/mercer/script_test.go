package main

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/testscript"
	"github.com/rogpeppe/go-internal/txtar"

	"github.com/mercer-go/mercer/internal/required"
	"github.com/mercer-go/mercer/learners"
	"github.com/mercer-go/mercer/testdata"
)

// asCommand is an environment variable. If it is set, the test binary behaves as the command.
const asCommand = "MERCER_TEST_AS_COMMAND"

func TestMain(m *testing.M) {
	if os.Getenv(asCommand) != "" {
		main()
	}
	testscript.Main(m, map[string]func(){"mercer": func() {
		var errs bytes.Buffer
		code := run(os.Args[1:], os.Stdin, os.Stdout, io.MultiWriter(os.Stderr, &errs))
		if flag := missingFlag(os.Args[1:], errs.String()); flag != "" {
			fmt.Fprintf(os.Stderr, "this message names --%s, which the command lacks\n", flag)
			code = 99
		}
		os.Exit(code)
	}})
}

var namedFlag = regexp.MustCompile(`(?:mercer ((?:[a-z]+ )+))?--([a-z][a-z-]*|C\b)`)

// missingFlag returns the first flag in an error message that is not in args, not a flag of the command with the
// given learner, and not a flag of a command that the message names before the flag.
func missingFlag(args []string, text string) string {
	root := new(app).root()
	if len(args) > 0 && args[0] == "help" {
		args = args[1:]
	}
	for _, m := range namedFlag.FindAllStringSubmatch(text, -1) {
		words := args
		if m[1] != "" {
			words = strings.Fields(m[1])
		}
		c, _, err := root.Find(words)
		if err != nil {
			c = root
		}
		has := func(name string) bool {
			flag := c.Flag(name)
			if flag == nil {
				return name == "help"
			}
			index := slices.Index(args, "--learner") + 1
			if _, isParameter := flag.Value.(*parameterFlag); !isParameter || m[1] != "" || index == 0 || index == len(args) {
				return true
			}
			for _, learner := range strings.Split(args[index], ",") {
				d, _ := learners.Find(learner)
				if _, has := d.Parameter(strings.TrimPrefix(name, "no-")); has {
					return true
				}
			}
			return false
		}
		typed := slices.ContainsFunc(args, func(arg string) bool { return strings.Contains(arg, "--"+m[2]) })
		if !has(m[2]) && !typed {
			return m[2]
		}
	}
	return ""
}

// TestScripts runs the transcripts in testdata/script, or only their beginnings if required.FewCases() is true.
func TestScripts(t *testing.T) {
	folder := "testdata/script"
	if required.FewCases() {
		folder = beginnings(t, folder)
	}
	runScripts(t, folder)
}

// beginnings writes the first commands of each transcript in a folder to a new folder, and returns the new folder.
func beginnings(t *testing.T, folder string) string {
	to := t.TempDir()
	names, err := filepath.Glob(filepath.Join(folder, "*.txtar"))
	if err != nil || len(names) == 0 {
		t.Fatalf("%d transcripts in %s, %v", len(names), folder, err)
	}
	for _, name := range names {
		archive, err := txtar.ParseFile(name)
		if err != nil {
			t.Fatal(err)
		}
		var kept []byte
		commands := 0
		for line := range bytes.Lines(archive.Comment) {
			if bytes.Contains(line, []byte("mercer ")) && line[0] != '#' {
				commands++
			}
			if commands > 3 {
				break
			}
			kept = append(kept, line...)
		}
		archive.Comment = kept
		if err := os.WriteFile(filepath.Join(to, filepath.Base(name)), txtar.Format(archive), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	return to
}

// TestLongScripts runs the transcripts in testdata/longscript, each of which takes seconds.
func TestLongScripts(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: benchmarks, and fits to a million features")
	}
	runScripts(t, "testdata/longscript")
}

// runScripts runs the transcripts in folder. A transcript may use these commands besides testscript's own:
//
//	fails CODE command...     require that the command exits with CODE, prints to stderr
//	                          one line that begins with "mercer: ", prints nothing to
//	                          stdout, and changes no file
//	json NAME=VALUE...        require that the last stdout is a JSON object with these
//	                          values; a.b is the member b of a; VALUE * means any value
//	cut FILE BYTES            truncate FILE to BYTES bytes; -BYTES removes the last BYTES
//	flip FILE OFFSET          invert the byte at OFFSET; -1 is the last byte
//	foreign FILE              write a safetensors file as another program writes it
//	grow FILE ROWS            write a CSV of ROWS rows with columns a, b and y
//	sparse FILE ROWS FEATURES write a LIBSVM file with eight features in each row; one of
//	                          the first 40 features determines the label, 1 or -1
//	wide FILE ROWS TEXTS      write a CSV with numbers in the columns a and y, and TEXTS
//	                          different texts in each of the columns u and v
func runScripts(t *testing.T, folder string) {
	testscript.Run(t, testscript.Params{
		Dir:                 folder,
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup: func(e *testscript.Env) error {
			return os.CopyFS(filepath.Join(e.WorkDir, "data"), testdata.FS)
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"fails": fails,
			"json":  jsonHas,
			"same":  sameJSON,
			"cut":   truncate,
			"flip":  flip,
			"grow":  grow,
			"wide":  writeWide,
			"sparse": func(ts *testscript.TestScript, _ bool, args []string) {
				ts.Check(os.WriteFile(ts.MkAbs(args[0]), sparseTable(number(ts, args[1]), number(ts, args[2])), 0o666))
			},
			"foreign": func(ts *testscript.TestScript, _ bool, args []string) {
				header := `{"x":{"dtype":"F64","shape":[1],"data_offsets":[0,8]}}`
				file := binary.LittleEndian.AppendUint64(nil, uint64(len(header)))
				ts.Check(os.WriteFile(ts.MkAbs(args[0]), append(append(file, header...), make([]byte, 8)...), 0o666))
			},
		},
	})
}

func fails(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: fails CODE command...")
	}
	filesBefore := files(ts)
	err := ts.Exec(args[1], args[2:]...)
	code := 0
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		code = exit.ExitCode()
	} else if err != nil {
		ts.Fatalf("%v", err)
	}
	ts.Logf("[exit code %d]", code)
	if strconv.Itoa(code) != args[0] {
		ts.Fatalf("exit code %d, want %s", code, args[0])
	}
	text := ts.ReadFile("stderr")
	if !strings.HasPrefix(text, "mercer: ") || strings.Count(text, "\n") != 1 || !strings.HasSuffix(text, "\n") {
		ts.Fatalf("stderr is not one line of mercer's")
	}
	if ts.ReadFile("stdout") != "" {
		ts.Fatalf("something was written to stdout")
	}
	if d := cmp.Diff(filesBefore, files(ts)); d != "" {
		ts.Fatalf("files have changed:\n%s", d)
	}
}

// files maps the files in the script's folder to their content.
func files(ts *testscript.TestScript) map[string]string {
	root := ts.MkAbs(".")
	contents := map[string]string{}
	err := fs.WalkDir(os.DirFS(root), ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			contents[path] = "" // the path is a folder
			return err
		}
		data, err := os.ReadFile(filepath.Join(root, path))
		contents[path] = string(data)
		return err
	})
	ts.Check(err)
	return contents
}

func jsonHas(ts *testscript.TestScript, neg bool, args []string) {
	var object map[string]any
	if err := json.Unmarshal([]byte(ts.ReadFile("stdout")), &object); err != nil {
		ts.Fatalf("stdout is not one JSON object: %v", err)
	}
	for _, arg := range args {
		name, want, _ := strings.Cut(arg, "=")
		var got any = object
		for key := range strings.SplitSeq(name, ".") {
			m, ok := got.(map[string]any)
			if _, has := m[key]; !ok || !has {
				ts.Fatalf("there is no %s", name)
			}
			got = m[key]
		}
		if text, ok := got.(string); ok && want != "*" && text != want {
			ts.Fatalf("%s is %q, want %q", name, text, want)
		} else if text, err := json.Marshal(got); !ok && want != "*" && (err != nil || string(text) != want) {
			ts.Fatalf("%s is %s, want %s", name, text, want)
		}
	}
}

// sameJSON requires that standard output is the same JSON object as in a file, except for times and memory.
func sameJSON(ts *testscript.TestScript, neg bool, args []string) {
	var objects [2]map[string]any
	for i, name := range []string{"stdout", args[0]} {
		ts.Check(json.Unmarshal([]byte(ts.ReadFile(name)), &objects[i]))
		for _, key := range []string{"seconds", "processor_seconds", "planned_bytes", "peak_bytes"} {
			delete(objects[i], key)
		}
	}
	if d := cmp.Diff(objects[1], objects[0]); d != "" {
		ts.Fatalf("standard output is not the object of %s (-want +got):\n%s", args[0], d)
	}
}

func truncate(ts *testscript.TestScript, neg bool, args []string) {
	data := ts.ReadFile(args[0])
	n := number(ts, args[1])
	if n < 0 {
		n += len(data)
	}
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), []byte(data[:n]), 0o666))
}

func flip(ts *testscript.TestScript, neg bool, args []string) {
	data := []byte(ts.ReadFile(args[0]))
	i := number(ts, args[1])
	if i < 0 {
		i += len(data)
	}
	data[i] ^= 0xff
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), data, 0o666))
}

func grow(ts *testscript.TestScript, neg bool, args []string) {
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), table3(number(ts, args[1])), 0o666))
}

func writeWide(ts *testscript.TestScript, neg bool, args []string) {
	text, kinds := []byte("u,v,a,y\n"), number(ts, args[2])
	for i := range number(ts, args[1]) {
		text = fmt.Appendf(text, "u%d,v%d,%d,%d\n", i%kinds, i*7%kinds, i%17, i%5)
	}
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), text, 0o666))
}

// sparseTable returns a LIBSVM file. The last row contains the last feature, so that all features exist.
func sparseTable(rows, features int) (text []byte) {
	for i := range rows {
		label, sign := -1, 21+i*7%20
		if i%2 == 1 {
			label, sign = 1, 1+i*7%20
		}
		values := map[int]float64{sign: 1}
		if i == rows-1 {
			values[features] = 1
		}
		for k := 0; len(values) < 8; k++ {
			values[41+(i*7919+k*((features-41)/8))%(features-41)] = 0.5 + float64((i+k)%4)/4
		}
		text = fmt.Appendf(text, "%d", label)
		for _, j := range slices.Sorted(maps.Keys(values)) {
			text = fmt.Appendf(text, " %d:%v", j, values[j])
		}
		text = append(text, '\n')
	}
	return text
}

// table3 returns a CSV with different rows and the columns a, b and y = a − b.
func table3(rows int) []byte {
	text := []byte("a,b,y\n")
	for i := range rows {
		a, b := i%97, i/97
		for j, v := range []int{a, b, a - b} {
			if j > 0 {
				text = append(text, ',')
			}
			text = strconv.AppendInt(text, int64(v), 10)
		}
		text = append(text, '\n')
	}
	return text
}

func number(ts *testscript.TestScript, text string) int {
	n, err := strconv.Atoi(text)
	ts.Check(err)
	return n
}
