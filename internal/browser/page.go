package browser

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// A Page is a page in a headless browser. Every failure of the browser ends the test.
//
// Commands and answers of the DevTools protocol (chromedevtools.github.io/devtools-protocol) go through two pipes,
// the file descriptors 3 and 4 of the browser. A zero byte ends each message.
type Page struct {
	Console []string // messages and errors of the console, and failed requests

	t       *testing.T
	send    io.Writer
	receive *bufio.Reader
	session string
	last    int // id of the last command
}

// Open shows the page at an address in a window of the given width and height, in pixels. The browser ends with
// the test. Without a browser, the test is skipped, or fails if MERCER_REQUIRE requires a browser.
func Open(t *testing.T, address string, width, height int) *Page {
	t.Helper()
	ctx, stop := context.WithTimeout(context.Background(), 2*time.Minute) // ends the browser if the test hangs
	c := exec.CommandContext(ctx, chromium(t), "--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--no-first-run",
		"--disable-background-networking", "--user-data-dir="+filepath.Join(t.TempDir(), "profile"), "--remote-debugging-pipe",
		fmt.Sprintf("--window-size=%d,%d", width, height), "about:blank")
	commands, send, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	receive, answers, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	c.ExtraFiles = []*os.File{commands, answers}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	commands.Close()
	answers.Close()
	p := &Page{t: t, send: send, receive: bufio.NewReader(receive)}
	t.Cleanup(func() {
		p.session = ""
		p.call("Browser.close", nil, nil)
		_ = c.Wait()
		stop()
		send.Close()
		receive.Close()
	})
	var target struct{ TargetID string }
	p.call("Target.createTarget", fields{"url": "about:blank"}, &target)
	var session struct{ SessionID string }
	p.call("Target.attachToTarget", fields{"targetId": target.TargetID, "flatten": true}, &session)
	p.session = session.SessionID
	p.call("Runtime.enable", nil, nil)
	p.call("Log.enable", nil, nil)
	p.call("Page.navigate", fields{"url": address}, nil)
	p.Await("location.href !== 'about:blank' && document.readyState === 'complete'")
	return p
}

// Text returns the value of a JavaScript expression as text. It awaits a value that is a promise.
func (p *Page) Text(expression string) string {
	p.t.Helper()
	var v struct {
		Result           struct{ Value string }
		ExceptionDetails json.RawMessage
	}
	p.call("Runtime.evaluate", fields{"expression": "Promise.resolve(" + expression + ").then(String)", "awaitPromise": true}, &v)
	if v.ExceptionDetails != nil {
		p.t.Fatalf("%s: %s", expression, v.ExceptionDetails)
	}
	return v.Result.Value
}

// Await waits until a condition in JavaScript is true.
func (p *Page) Await(condition string) {
	p.t.Helper()
	for begin := time.Now(); p.Text(condition) != "true"; time.Sleep(5 * time.Millisecond) {
		if time.Since(begin) > time.Minute {
			p.t.Fatalf("%s did not become true", condition)
		}
	}
}

// Click presses and releases the left mouse button at the center of the first element that matches selector.
func (p *Page) Click(selector string) {
	p.t.Helper()
	x, y := p.center(selector)
	for _, kind := range []string{"mousePressed", "mouseReleased"} {
		p.call("Input.dispatchMouseEvent", fields{"type": kind, "x": x, "y": y, "button": "left", "clickCount": 1}, nil)
	}
}

// Point moves the mouse to the center of the first element that matches a CSS selector.
func (p *Page) Point(selector string) {
	p.t.Helper()
	x, y := p.center(selector)
	p.call("Input.dispatchMouseEvent", fields{"type": "mouseMoved", "x": x, "y": y}, nil)
}

// center scrolls to the first element that matches a CSS selector, and returns its center.
func (p *Page) center(selector string) (x, y float64) {
	p.t.Helper()
	text, _ := json.Marshal(selector) // a string cannot fail to be marshaled
	p.Text("document.querySelector(" + string(text) + ").scrollIntoView({block: 'center'})")
	center := p.Text("(b => (b.left + b.right)/2 + ' ' + (b.top + b.bottom)/2)(document.querySelector(" + string(text) + ").getBoundingClientRect())")
	if _, err := fmt.Sscan(center, &x, &y); err != nil {
		p.t.Fatalf("the position of the element %s on the page is %q, which is not two numbers: %v", selector, center, err)
	}
	return x, y
}

// Write replaces the text of the first input field that matches a CSS selector.
func (p *Page) Write(selector, text string) {
	p.t.Helper()
	p.Click(selector)
	p.call("Input.dispatchKeyEvent", fields{"type": "keyDown", "key": "a", "commands": []string{"selectAll"}}, nil)
	p.Press("Delete")
	p.call("Input.insertText", fields{"text": text}, nil)
}

// Press presses and releases Enter or Delete.
func (p *Page) Press(key string) {
	p.t.Helper()
	event := fields{"type": "keyDown", "key": key, "windowsVirtualKeyCode": map[string]int{"Enter": 13, "Delete": 46}[key]}
	if key == "Enter" {
		event["text"] = "\r"
	}
	p.call("Input.dispatchKeyEvent", event, nil)
	p.call("Input.dispatchKeyEvent", fields{"type": "keyUp", "key": key}, nil)
}

// Media shows the page as for a kind of media: print, or screen.
func (p *Page) Media(kind string) {
	p.t.Helper()
	p.call("Emulation.setEmulatedMedia", fields{"media": kind}, nil)
}

// Picture returns the visible part of the page as a PNG file.
func (p *Page) Picture() []byte {
	p.t.Helper()
	var v struct{ Data []byte }
	p.call("Page.captureScreenshot", nil, &v)
	return v.Data
}

type fields map[string]any

// call sends a command, waits for its answer, and stores the result in `result` if that is not nil.
func (p *Page) call(method string, parameters fields, result any) {
	p.t.Helper()
	p.last++
	command := fields{"id": p.last, "method": method}
	if parameters != nil {
		command["params"] = parameters
	}
	if p.session != "" {
		command["sessionId"] = p.session
	}
	text, err := json.Marshal(command)
	if err == nil {
		_, err = p.send.Write(append(text, 0))
	}
	for err == nil {
		if text, err = p.receive.ReadBytes(0); err != nil {
			break
		}
		var m struct {
			ID             int
			Method         string
			Params, Result json.RawMessage
			Error          *struct{ Message string }
		}
		err = json.Unmarshal(text[:len(text)-1], &m)
		switch {
		case err != nil:
		case m.Method == "Runtime.consoleAPICalled", m.Method == "Runtime.exceptionThrown", m.Method == "Log.entryAdded":
			p.Console = append(p.Console, string(m.Params))
		case m.ID != p.last: // an event that is not needed
		case m.Error != nil:
			err = fmt.Errorf("%s", m.Error.Message)
		case result == nil:
			return
		default:
			if err = json.Unmarshal(m.Result, result); err == nil {
				return
			}
		}
	}
	p.t.Fatalf("browser: %s: %v", method, err)
}
