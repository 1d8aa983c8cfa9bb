// Command httpceiling answers each request with a constant after it has read the body. bench/serve_wrk.py measures
// its rate, to compare mercer serve with net/http itself. It prints its address.
package main

import (
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
)

func main() {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("http://%s/\n", l.Addr())
	log.Fatal(http.Serve(l, http.HandlerFunc(answer)))
}

func answer(w http.ResponseWriter, r *http.Request) {
	if _, err := io.Copy(io.Discard, r.Body); err != nil {
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = io.WriteString(w, `{"values":{"target":206.84453687255723}}`+"\n") // the client may have disconnected
}
