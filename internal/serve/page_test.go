package serve

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/mercer-go/mercer"
	"github.com/mercer-go/mercer/dataset"
	"github.com/mercer-go/mercer/internal/browser"
	"github.com/mercer-go/mercer/learners"
)

// TestDocs renders the page /docs in a browser, compares it with the OpenAPI description, and sends its example.
func TestDocs(t *testing.T) {
	s := server(t, fit(t, ridge, price), nil)
	page := call(s, "GET", "/docs", "", "").Body.String()
	type described struct{ Name, Description string }
	var api struct {
		Paths map[string]map[string]struct {
			Summary     string
			Parameters  []described
			RequestBody struct{ Content map[string]described }
			Responses   map[string]described
		}
	}
	if err := json.Unmarshal(call(s, "GET", "/openapi.json", "", "").Body.Bytes(), &api); err != nil || len(api.Paths) == 0 {
		t.Fatal(err)
	}
	for path, methods := range api.Paths {
		for method, o := range methods {
			want := []string{">" + strings.ToUpper(method) + " " + path + "<", o.Summary, `</span>` + path + "</pre>"}
			for _, p := range o.Parameters {
				want = append(want, "<code>"+p.Name, p.Description)
			}
			for code, answer := range o.Responses {
				want = append(want, "<td>"+code+"</td><td>"+answer.Description+"</td>")
			}
			for kind := range o.RequestBody.Content {
				want = append(want, "<code>"+kind+"</code>")
			}
			for _, w := range want {
				if !strings.Contains(page, w) {
					t.Errorf("%s: the page lacks %q", path, w)
				}
			}
		}
	}
	if external := regexp.MustCompile(`(src|href)="[a-z]+:[^,]`).FindString(page); external != "" {
		t.Errorf("the page has %s", external)
	}
	if testing.Short() {
		return // the checks below need a browser
	}
	chromium := browser.Start(t)
	chromium.Check(t, page, 0)
	web := httptest.NewServer(s)
	defer web.Close()
	p := chromium.Open(t, web.URL+"/docs", 900, 1800)
	if path := os.Getenv("MERCER_PICTURE"); path != "" {
		if err := os.WriteFile(path, p.Picture(), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	command := regexp.MustCompile(`^curl -H 'Content-Type: (.*?)' -d '(.*)' (http:.*)$`).FindStringSubmatch(p.Text("document.querySelector('pre').textContent"))
	if command == nil || command[3] != web.URL+"/predict" {
		t.Fatalf("the command is %q", command)
	}
	if w := call(s, "POST", "/predict", command[1], command[2]); w.Code != 200 {
		t.Errorf("%s gets %d %s", command[0], w.Code, w.Body)
	}
	if len(p.Console) > 0 {
		t.Errorf("the console has %q", p.Console)
	}
}

// TestForm submits the form of the page in a browser, and compares the page with the server's answer.
func TestForm(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a browser")
	}
	chromium := browser.Start(t)
	open := func(t *testing.T, h http.Handler) (*browser.Page, *httptest.Server) {
		web := httptest.NewServer(h)
		t.Cleanup(web.Close)
		return chromium.Open(t, web.URL, 900, 800), web
	}
	// lines returns what the page shows under the form: one "name: value" for each result, or the error.
	lines := func(p *browser.Page) []string {
		p.Await("document.querySelector('#error').textContent !== '' || document.querySelector('#result').rows.length > 0")
		return strings.Split(p.Text("[document.querySelector('#error').textContent, ...[...document.querySelector('#result').rows].map(r => r.cells[0].textContent + ': ' + r.cells[1].textContent)].filter(s => s).join('\\n')"), "\n")
	}
	shows := func(t *testing.T, p *browser.Page, want ...string) {
		t.Helper()
		if got := lines(p); !slices.Equal(got, want) {
			t.Errorf("the page shows %q, want %q", got, want)
		}
	}
	shortest := func(v float64) string { // as JavaScript prints it
		text, _ := json.Marshal(v)
		return string(text)
	}
	t.Run("numbers", func(t *testing.T) {
		header, rows, _ := strings.Cut(houses, "\n")
		table, err := dataset.Read("-", strings.NewReader(header+"\n"+strings.Repeat(rows, 3)))
		if err != nil {
			t.Fatal(err)
		}
		s := server(t, fitTable(t, table, ridge, price), nil)
		answer := func(query, row string) (v mercer.Prediction) {
			w := call(s, "POST", "/predict"+query, "application/json", row)
			if err := json.Unmarshal(w.Body.Bytes(), &v); err != nil || w.Code != 200 {
				t.Fatalf("%d %s: %v", w.Code, w.Body, err)
			}
			return v
		}
		p, web := open(t, s)
		p.Write("[data-column=area]", "72.5")
		p.Write("[data-column=town]", "york")
		p.Write("[data-column=kind]", "flat")
		p.Click("button")
		shows(t, p, "prediction of price: "+shortest(answer("", `{"area": 72.5, "town": "york", "kind": "flat"}`).Values["price"]))

		p.Write("[data-column=area]", "large")
		p.Press("Enter")
		p.Await("document.querySelector('#error').textContent !== ''")
		shows(t, p, `column "area": "large" is not a number; correct it, or name it as a marker of missing values`)
		if !slices.ContainsFunc(p.Console, func(line string) bool { return strings.Contains(line, "400 (Bad Request)") }) {
			t.Errorf("the console has %q", p.Console)
		}
		p.Console = nil

		p.Write("[data-column=area]", "72.5")
		p.Write("[data-column=town]", "leeds")
		p.Write("[data-column=kind]", "")
		p.Click("[data-query='interval=0.9']")
		p.Click("[data-query=bound]")
		p.Click("button")
		v := answer("?interval=0.9&bound", `{"area": 72.5, "town": "leeds", "kind": null}`)
		shows(t, p, "prediction of price: "+shortest(v.Values["price"]), "lower end of the interval of price: "+shortest(v.Lower["price"]), "upper end of the interval of price: "+shortest(v.Upper["price"]),
			"proven bound of the error of price: "+shortest(v.Bound["price"]), "unknown value of town: leeds", "missing cell filled in: kind")
		if len(p.Console) > 0 {
			t.Errorf("the console has %q", p.Console)
		}

		web.CloseClientConnections()
		web.Close()
		p.Click("button")
		p.Await("document.querySelector('#error').textContent !== ''")
		shows(t, p, "The server does not answer: Failed to fetch")
	})
	t.Run("classes", func(t *testing.T) {
		m := fit(t, learners.Logistic{Lambda: 1}, dataset.Rules{Targets: []string{"kind"}, Labels: true, Drop: []string{"rent", "price"}, Standardize: true})
		row := json.RawMessage(`{"area": 55, "town": "york"}`)
		list, err := m.PredictRows(t.Context(), row, mercer.PredictOptions{})
		if err != nil {
			t.Fatal(err)
		}
		p, _ := open(t, server(t, m, nil))
		p.Write("[data-column=area]", "55")
		p.Write("[data-column=town]", "york")
		p.Click("[data-query=proba]")
		p.Click("button")
		want := list[0].Probabilities
		shows(t, p, "class: "+list[0].Class, "probability of flat: "+shortest(want["flat"]), "probability of house: "+shortest(want["house"]))
	})
	// The answer to the first of two requests arrives last and must be ignored.
	t.Run("order", func(t *testing.T) {
		s := server(t, fit(t, ridge, price), nil)
		first, second := make(chan struct{}), make(chan struct{})
		var requests atomic.Int64
		p, _ := open(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/predict" {
				if requests.Add(1) == 1 {
					close(first)
					<-second
				}
			}
			s.ServeHTTP(w, r)
		}))
		p.Write("[data-column=area]", "50")
		p.Click("button")
		<-first
		p.Write("[data-column=area]", "110")
		p.Click("button")
		want := lines(p)
		if len(want) != 1 || !strings.HasPrefix(want[0], "prediction of price: ") {
			t.Errorf("the page shows %q", want)
		}
		close(second)
		p.Await("performance.getEntriesByType('resource').filter(e => e.name.endsWith('/predict')).length === 2")
		p.Text("new Promise(done => setTimeout(done, 50))") // time for the page's script to handle the answer
		shows(t, p, want...)
	})
}
