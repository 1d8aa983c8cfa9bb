package main

import (
	"encoding/xml"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mercer-go/mercer/internal/browser"
)

// TestHTMLPages checks that the pages of explain, evaluate, plot and tune are well-formed, group the classes and
// have the values of points. Without -short a browser renders them.
func TestHTMLPages(t *testing.T) {
	folder := t.TempDir()
	mercer := func(args ...string) {
		t.Helper()
		var out, errs strings.Builder
		if code := run(append(args, "--quiet"), strings.NewReader(""), &out, &errs); code != 0 {
			t.Fatalf("mercer %s: %d: %s", strings.Join(args, " "), code, errs.String())
		}
	}
	in := func(name string) string { return filepath.Join(folder, name) }
	threeClasses := strings.Replace(everyData(), "high\n", "top\n", 5) // three classes
	if err := os.WriteFile(in("data.csv"), []byte(threeClasses), 0o666); err != nil {
		t.Fatal(err)
	}
	writeWithout(t, in("data.csv"), in("number.csv"), "class")
	writeWithout(t, in("data.csv"), in("class.csv"), "number")
	mercer("fit", "--target", "number", "--kernel", "gaussian(sigma=1)", "--lambda", "0.1", "--model", in("number.st"), in("number.csv"))
	mercer("fit", "--learner", "logistic", "--target", "class", "--model", in("class.st"), in("class.csv"))
	var chromium *browser.Browser
	if !testing.Short() {
		chromium = browser.Start(t)
	}
	for name, c := range map[string]struct {
		args     []string
		pictures int
		want     []string
	}{
		"explain":         {[]string{"explain", "--model", in("number.st"), "--out"}, 2, []string{"± error", "average prediction of number: "}},
		"explain classes": {[]string{"explain", "--model", in("class.st"), "--out"}, 2, []string{`<g data-series="top">`, "Effects on low", "average probability: "}},
		"evaluate":        {[]string{"evaluate", "--model", in("number.st"), "--plot"}, 2, []string{"RMSE", "true − predicted: "}},
		"evaluate classes": {[]string{"evaluate", "--model", in("class.st"), "--plot"}, 2, []string{"Confusion matrix", `<g data-series="top">`, "true low, predicted low",
			"true positive rate: 1"}},
		"fit":                     {[]string{"fit", "--kernel", "gaussian(sigma=1)", "--target", "number", "--test-fraction", "0.7", "--model", in("again.st"), "--plot"}, 2, []string{"Fit of kernel-ridge", "Scores on the held-out rows", "true − predicted: "}},
		"fit without other rows":  {[]string{"fit", "--kernel", "gaussian(sigma=1)", "--target", "number", "--model", in("alone.st"), "--plot"}, 0, []string{"Fit of kernel-ridge", "residual"}},
		"fit of class.st, traced": {[]string{"fit", "--learner", "perceptron", "--trace", "--target", "class", "--test-fraction", "0.3", "--model", in("again-class.st"), "--plot"}, 4, []string{"Confusion matrix", "mistakes in the epoch: "}},
		"tune":                    {[]string{"tune", "--search", "grid", "--lambdas", "0.01,0.1,1", "--kernel", "gaussian(sigma=1)", "--target", "number", "--plot"}, 1, []string{"<title>"}},
		"plot curve":              {[]string{"plot", "curve", "--model", in("number.st"), "--out"}, 1, []string{"number: "}},
		"plot boundary":           {[]string{"plot", "boundary", "--model", in("class.st"), "--out"}, 1, []string{`<g data-series="high">`}},
	} {
		t.Run(name, func(t *testing.T) {
			path, table := in(strings.ReplaceAll(name, " ", "-")+".html"), in("number.csv")
			if strings.Contains(strings.Join(c.args, " "), "class.st") {
				table = in("class.csv")
			}
			mercer(append(c.args, path, table)...)
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			page := string(text)
			for d := xml.NewDecoder(strings.NewReader(page)); ; {
				if _, err := d.Token(); errors.Is(err, io.EOF) {
					break
				} else if err != nil {
					t.Fatalf("the page is not well-formed: %v", err)
				}
			}
			if c.pictures > 0 {
				c.want = append(c.want, `<circle class="hint"`)
			}
			for _, want := range c.want {
				if !strings.Contains(page, want) {
					t.Errorf("the page has no %s", want)
				}
			}
			if n := strings.Count(page, `<svg class="paper"`); n != c.pictures {
				t.Errorf("%d pictures, want %d", n, c.pictures)
			}
			if chromium != nil {
				chromium.Check(t, page, strings.Count(page, "<figure"))
				operatePage(t, chromium, path)
			}
		})
	}
}

// operatePage opens a page in a window of the width of a phone. It points at a value, sorts each table and selects
// each class, if there are any.
func operatePage(t *testing.T, chromium *browser.Browser, path string) {
	t.Helper()
	p := chromium.Open(t, "file://"+path, 500, 900)
	check := func(action, condition string) {
		t.Helper()
		if got := p.Text(condition); got != "true" {
			t.Errorf("%s: %s is %s", action, condition, got)
		}
	}
	if p.Text(`document.querySelector(".hint") !== null`) == "true" {
		p.Point(".hint")
		check("pointing at a value", `document.querySelector(".tip").offsetHeight > 0 && document.querySelector(".tip").textContent !== ""`)
	}
	check("sorting by the first column, twice", `[...document.querySelectorAll("table")].every(t => {
		const rows = () => [...t.tBodies[0].rows].map(r => r.innerText), button = t.querySelector("th button");
		if (button === null) return rows().length < 2;
		button.click();
		const up = rows();
		button.click();
		return up.length === rows().length && up.toReversed().join() === rows().join();
	})`)
	check("selecting a class", `[...document.querySelectorAll(".switch option")].slice(1).every(o => {
		const list = o.closest("select");
		list.value = o.value;
		list.dispatchEvent(new Event("change"));
		return [...document.querySelectorAll("[data-series]")].every(e => (e.hidden || e.classList.contains("off")) === (e.dataset.series !== o.value));
	})`)
	if classes := p.Text(`document.querySelectorAll("[data-series]").length > 0`); classes == "true" {
		check("the list of classes", `document.querySelectorAll(".switch option").length > 2 || new Set([...document.querySelectorAll("[data-series]")].map(e => e.dataset.series)).size === 1`)
	}
	if len(p.Console) > 0 {
		t.Errorf("the console has %q", p.Console)
	}
}
