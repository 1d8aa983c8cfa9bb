package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/spf13/pflag"

	"github.com/mercer-go/mercer/internal/required"
)

// checkMessage requires that a failed call prints one line of at most 500 printable characters.
func checkMessage(t *testing.T, args []string, stdin string) (code int) {
	t.Helper()
	var out, errs bytes.Buffer
	code = run(args, strings.NewReader(stdin), &out, &errs)
	if code == 0 {
		return code
	}
	text := strings.TrimSuffix(errs.String(), "\n")
	call := func() string { return fmt.Sprintf("mercer %.300q", args) }
	if !strings.HasPrefix(text, "mercer: ") || len(text)+1 != errs.Len() {
		t.Errorf("%s: stderr is not one line of mercer's: %.600q", call(), errs.String())
	}
	if n := utf8.RuneCountInString(text); n > 500 {
		t.Errorf("%s: %d characters: %.600q", call(), n, text)
	}
	if i := strings.IndexFunc(text, func(r rune) bool { return !strconv.IsPrint(r) }); i >= 0 || !utf8.ValidString(text) {
		t.Errorf("%s: byte %d cannot be printed: %.600q", call(), i, text)
	}
	return code
}

// nasty returns texts that an error message must not repeat as they are.
func nasty() []string {
	return []string{
		strings.Repeat("x", 5000), strings.Repeat("word ", 2000), "a\x1b[31mb", "two\nlines", "back\rtab\t", "\x80\xff", "\u202eleft", "nul\x00",
		strings.Repeat("\x01", 600), strings.Repeat("λ", 600),
	}
}

// nastyFor returns the texts of nasty. If required.FewCases() is true, it returns two of them, which depend on i.
func nastyFor(i int) []string {
	texts := nasty()
	return required.Subset(2, append(texts[i%len(texts):], texts[:i%len(texts)]...))
}

// TestMessagesOfFlags checks the error messages for each flag of the subcommands. The values of the
// flag are the results of nasty.
func TestMessagesOfFlags(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := os.WriteFile("t.csv", []byte(everyData()), 0o666); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if code := run([]string{"fit", "--quiet", "--learner", "ridge", "--target", "number", "--model", "m.st", "t.csv"}, nil, &out, &out); code != 0 {
		t.Fatal(out.String())
	}
	failed, flags := 0, 0
	for _, c := range (&app{}).root().Commands() {
		base := map[string][]string{
			"fit":       {"--target", "number", "--model", "n.st", "t.csv"},
			"cv":        {"--target", "number", "--learner", "ridge", "--folds", "2", "t.csv"},
			"bootstrap": {"--target", "number", "--learner", "ridge", "--rounds", "2", "t.csv"},
			"tune":      {"--target", "number", "--kernel", "linear()", "t.csv"},
			"predict":   {"--model", "m.st", "t.csv"},
			"evaluate":  {"--model", "m.st", "t.csv"},
			"learners":  {}, "kernels": {}, "version": {},
		}[c.Name()]
		if base == nil {
			continue
		}
		c.InheritedFlags() // adds the inherited flags to Flags()
		c.Flags().VisitAll(func(f *pflag.Flag) {
			if f.Value.Type() == "bool" {
				return
			}
			flags++
			for _, value := range nastyFor(flags) {
				if checkMessage(t, append([]string{c.Name(), "--quiet", "--" + f.Name + "=" + value}, base...), "") != 0 {
					failed++
				}
			}
		})
		for _, value := range nastyFor(flags) {
			checkMessage(t, []string{c.Name(), "--" + value}, "")
			checkMessage(t, []string{c.Name(), value}, "")
			checkMessage(t, append([]string{c.Name(), value}, base...), "")
		}
	}
	if failed < flags {
		t.Errorf("%d calls have failed: the sweep tests little", failed)
	}
	for _, value := range nasty() {
		for _, args := range [][]string{{value}, {"help", value}, {"--" + value}, {"learners", value}, {"bench", value}, {"demo", value}} {
			if checkMessage(t, args, "") == 0 {
				t.Errorf("mercer %.100q ends with 0", args)
			}
		}
	}
}

// TestMessagesOfFiles checks the error messages for tables and models whose names and contents come from nasty.
func TestMessagesOfFiles(t *testing.T) {
	t.Chdir(t.TempDir())
	contents := []string{"", "\n", "PAR1", "\x93NUMPY", "PK\x03\x04", "\x00\x00\x08\x01", "\x1f\x8b", "1 1:1 x:2\n", "{}", strings.Repeat("\x00", 5000)}
	for _, value := range nasty() {
		contents = append(contents,
			value,
			"a,number\n1,"+value+"\n2,3\n",
			value+",number\n1,2\n,z\n",
			"a,"+value+"\n1,2\n",
			"a,number\n1,2,"+value+"\n",
			strings.Repeat(value+",", 20)+"a\n1,2\n",
			"\""+value+",number\n1,2\n",
		)
	}
	for i, content := range required.Subset(20, contents) {
		name := "f" + strconv.Itoa(i)
		if err := os.WriteFile(name, []byte(content), 0o666); err != nil {
			t.Fatal(err)
		}
		for _, args := range [][]string{
			{"fit", "--learner", "ridge", "--target", "number", "--model", "m.st", name},
			{"fit", "--stream", "--learner", "ridge", "--target", "number", "--model", "m.st", name},
			{"predict", "--model", name, name},
		} {
			checkMessage(t, append(args, "--quiet"), "")
		}
		checkMessage(t, []string{"fit", "--quiet", "--learner", "ridge", "--target", "number", "--model", "m.st", "-"}, content)
	}
	for _, value := range nasty() {
		name := filepath.Base(value)
		if len(name) > 250 {
			name = name[:250] // file systems limit the length of names
		}
		if err := os.WriteFile(name, []byte("a,number\n1,2\n2,z\n"), 0o666); err != nil {
			t.Logf("%.40q: %v", name, err)
		}
		for _, args := range [][]string{
			{"fit", "--target", "number", "--model", "m.st", name},
			{"fit", "--target", "number", "--model", name, name},
			{"predict", "--model", name, name},
			{"predict", "--model", name + "/" + name, name},
		} {
			if checkMessage(t, append(args, "--quiet"), "") == 0 {
				t.Errorf("mercer %.100q ends with 0", args)
			}
		}
	}
}
