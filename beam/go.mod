module github.com/mercer-go/mercer/beam

go 1.26.0

// The two modules are developed in one repository. A program that uses this one
// leaves the line out: `go get github.com/mercer-go/mercer/beam` takes the
// version of the parent that is required below.
replace github.com/mercer-go/mercer => ../

require (
	github.com/apache/beam/sdks/v2 v2.77.0
	github.com/mercer-go/mercer v0.0.0
	gonum.org/v1/gonum v0.17.0
)

require (
	github.com/agnivade/levenshtein v1.2.2 // indirect
	github.com/google/renameio/v2 v2.0.2 // indirect
	golang.org/x/sys v0.49.0 // indirect
)
