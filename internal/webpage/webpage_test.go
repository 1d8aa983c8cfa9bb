package webpage_test

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/mercer-go/mercer/internal/browser"
	"github.com/mercer-go/mercer/internal/webpage"
)

// sample is a page with a table of numbers, a table for each of two classes, and a picture of these classes.
func sample(t *testing.T) string {
	t.Helper()
	cells := func(texts ...string) (row []webpage.Cell) {
		for _, text := range texts {
			row = append(row, webpage.Cell{Text: text, Note: "note"})
		}
		return row
	}
	p := webpage.Page{Title: "A <title> & more", Lead: "An answer.", Facts: []string{"a fact"}, Footer: "the end", Cards: []webpage.Card{
		{Title: "Numbers", Head: []string{"name", "value"}, Rows: [][]webpage.Cell{cells("b10", "2"), cells("a", "–"), cells("b9", "1e3"), cells("c", "−5")}},
		{Title: "Class p", Series: "p", Head: []string{"name"}, Rows: [][]webpage.Cell{cells("only p")}},
		{Title: "Class q", Series: "q", Head: []string{"name"}, Rows: [][]webpage.Cell{cells("only q")}},
		{Title: "Picture", Picture: `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 300 200"><g data-series="p"><path d="M0,0L300,200" stroke="#0072b2"/></g>
<circle class="hint" data-series="p" cx="150" cy="100" r="4"><title>p at 150</title></circle>
<circle class="hint" data-series="q" cx="160" cy="100" r="4"><title>q at 160</title></circle></svg>`},
	}}
	var b bytes.Buffer
	if err := p.Write(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// TestPageHasAllWithoutScript checks that the page is well-formed, loads nothing, and needs no script for its content.
func TestPageHasAllWithoutScript(t *testing.T) {
	page := sample(t)
	d := xml.NewDecoder(strings.NewReader(page))
	for {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
	}
	if external := regexp.MustCompile(`(?i)<(link|img|iframe)|\b(src|href|on[a-z]+)=|url\(|@import|fetch\(|XMLHttp`).FindString(page); external != "" {
		t.Errorf("the page has %s", external)
	}
	static := regexp.MustCompile(`(?s)<script>.*</script>`).ReplaceAllString(page, "")
	if static == page {
		t.Fatal("the page has no script")
	}
	for _, want := range []string{"A &lt;title&gt; &amp; more", "An answer.", "a fact", "b10", "only p", "only q", "<title>p at 150</title>", "the end"} {
		if !strings.Contains(static, want) {
			t.Errorf("without the script the page has no %s", want)
		}
	}
	if strings.Contains(static, "hidden") || strings.Contains(static, "<button") {
		t.Error("without the script a part of the page is hidden, or has no effect")
	}
}

// TestScript sorts a table, points at a picture and selects a class in a browser.
func TestScript(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a browser")
	}
	page, chromium := sample(t), browser.Start(t)
	open := func(page string) *browser.Page {
		file := filepath.Join(t.TempDir(), "page.html")
		if err := os.WriteFile(file, []byte(page), 0o666); err != nil {
			t.Fatal(err)
		}
		return chromium.Open(t, "file://"+file, 1000, 900)
	}
	p := open(page)
	check := func(name, expression, want string) {
		t.Helper()
		if got := p.Text(expression); got != want {
			t.Errorf("%s: got %q, want %q", name, got, want)
		}
	}
	const (
		rows  = `[...document.querySelector("tbody").rows].map(r => r.cells[0].firstChild.textContent).join(" ")`
		order = `[...document.querySelector("thead").rows[0].cells].map(h => h.getAttribute("aria-sort") ?? "none").join(" ")`
		cards = `[...document.querySelectorAll("figure")].filter(f => f.offsetHeight > 0).map(f => f.querySelector("h2").textContent).join(", ")`
		tip   = `[...document.querySelectorAll(".tip")].filter(t => t.offsetHeight > 0).map(t => t.textContent).join()`
	)
	check("at first", rows, "b10 a b9 c")
	check("at first", order, "none none")
	p.Click("th:nth-child(2) button")
	check("after a click on value", rows, "c b10 b9 a")
	check("after a click on value", order, "none ascending")
	p.Press("Enter") // activates the button that has the focus
	check("after the key Enter", rows, "b9 b10 c a")
	check("after the key Enter", order, "none descending")
	p.Click("th:nth-child(1) button")
	check("after a click on name", rows, "a b9 b10 c")
	check("after a click on name", order, "ascending none")
	check("in a table of one row", `document.querySelectorAll("table")[1].querySelectorAll("button").length`, "0")

	p.Point("circle")
	check("at the first point", tip, "p at 150")
	p.Point("circle:last-child")
	check("at the second point", tip, "q at 160")
	p.Point("h1")
	check("away from the picture", tip, "")

	choose := func(name string) string {
		return fmt.Sprintf(`(l => { l.value = %q; l.dispatchEvent(new Event("change")) })(document.querySelector("select"))`, name)
	}
	check("the classes", `[...document.querySelector("select").options].map(o => o.text).join(" ")`, "all p q")
	p.Text(choose("q"))
	check("class q", cards, "Numbers, Class q, Picture")
	p.Point("circle")
	check("class q", tip, "q at 160")
	check("class q", `document.querySelector("svg g").classList.contains("off")`, "true")
	p.Text(choose(""))
	check("all classes", cards, "Numbers, Class p, Class q, Picture")
	const visible = `[...document.querySelectorAll(".switch, .tip")].filter(e => e.offsetHeight > 0).length`
	p.Point("circle")
	check("the list of classes and the value of a point on the screen", visible, "2")
	p.Media("print")
	check("on paper", visible, "0")
	if len(p.Console) > 0 {
		t.Errorf("the console has %q", p.Console)
	}

	// Without the script, the page must show the same text, except for the list of classes.
	const text = `[...document.querySelectorAll("h1, p, figure, footer")].map(e => e.innerText).join("\n")`
	withScript := open(page).Text(text)
	if withoutScript := open(regexp.MustCompile(`(?s)<script>.*</script>`).ReplaceAllString(page, "")).Text(text); withoutScript != withScript {
		t.Errorf("without the script the page reads %q, with it %q", withoutScript, withScript)
	}
}
