module github.com/mercer-go/mercer

go 1.26
