package serve

import (
	"encoding/json"
	"math"
	"testing"

	"github.com/mercer-go/mercer"
	"github.com/mercer-go/mercer/dataset"
	"github.com/mercer-go/mercer/learners"
)

// TestQuickAnswers compares fastPath with the general path, and checks which requests fastPath answers.
func TestQuickAnswers(t *testing.T) {
	twoTargets := dataset.Rules{Targets: []string{"rent", "price"}, Standardize: true}
	for _, m := range []*mercer.Model[learners.Model]{fit(t, ridge, price), fit(t, learners.Ridge{Lambda: 1}, twoTargets)} {
		s, general := server(t, m, nil), server(t, m, nil)
		if s.current.fastPath == nil {
			t.Skip("a prediction takes longer than ", maxFastTime)
		}
		general.current.fastPath = nil
		for _, c := range []struct {
			body string
			fast bool
		}{
			{flatRow, true},
			{" {\n\"kind\" : \"house\" ,\t\"town\":\"bath\",\"area\":-1.25e2}\r\n", true},
			{`{"area":0.5,"town":"bath","kind":"flat"}`, true},
			{`{"area":55,"town":"york","kind":"flat"}x`, false},
			{`{"area":55,"town":"york","kind":"flat",}`, false},
			{`{"area":55,"town":"york","kind":"flat"`, false},
			{`{"area":55,"town":"york"}`, false},
			{`{"area":55,"area":56,"town":"york","kind":"flat"}`, false},
			{`{"area":55,"town":"york","kind":"flat","rent":5}`, false},
			{`{"area":"55","town":"york","kind":"flat"}`, false},
			{`{"area":null,"town":"york","kind":"flat"}`, false},
			{`{"area":055,"town":"york","kind":"flat"}`, false},
			{`{"area":+55,"town":"york","kind":"flat"}`, false},
			{`{"area":55.,"town":"york","kind":"flat"}`, false},
			{`{"area":.5,"town":"york","kind":"flat"}`, false},
			{`{"area":1e999,"town":"york","kind":"flat"}`, false},
			{`{"area":0.1234567890123456789012345,"town":"york","kind":"flat"}`, false},
			{`{"area":55,"town":"leeds","kind":"flat"}`, false},
			{`{"area":55,"town":"yor\u006b","kind":"flat"}`, false},
			{`{"area":55,"town":" york","kind":"flat"}`, false},
			{`{"area":55 56,"town":"york","kind":"flat"}`, false},
			{`{"area":55,"town":5,"kind":"flat"}`, false},
			{`[{"area":55,"town":"york","kind":"flat"}]`, false},
			{"", false},
		} {
			if got := s.current.fastPath.answer(t.Context(), m, new(rowBuffer), []byte(c.body)) != nil; got != c.fast {
				t.Errorf("%s: quick is %t", c.body, got)
			}
			got, want := call(s, "POST", "/predict", "application/json", c.body), call(general, "POST", "/predict", "application/json", c.body)
			var a, b mercer.Prediction
			if got.Code != want.Code || !c.fast && got.Body.String() != want.Body.String() {
				t.Errorf("%s gets %d %s, and %d %s on the general path", c.body, got.Code, got.Body, want.Code, want.Body)
			} else if c.fast {
				_ = json.Unmarshal(got.Body.Bytes(), &a)
				_ = json.Unmarshal(want.Body.Bytes(), &b)
				for name, v := range b.Values {
					if !approxEqual(a.Values[name], v) || len(a.Values) != len(b.Values) {
						t.Errorf("%s gets %s, and %s on the general path", c.body, got.Body, want.Body)
					}
				}
			}
		}
	}
}

// TestAppendNumber compares appendNumber with encoding/json.
func TestAppendNumber(t *testing.T) {
	for _, v := range []float64{0, math.Copysign(0, -1), 1, -2.5, 1e-6, 9.9e-7, 1e-9, -1.5e-10, 1e-300, 123456789, 1e20, 1e21, 1e300, math.Pi} {
		want, err := json.Marshal(v)
		if got := string(appendNumber(nil, v)); err != nil || got != string(want) {
			t.Errorf("%v is written as %s, want %s", v, got, want)
		}
	}
}
