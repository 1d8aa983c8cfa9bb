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

// A Browser is a headless browser.
//
// Commands and answers of the DevTools protocol (chromedevtools.github.io/devtools-protocol) go through two pipes,
// the file descriptors 3 and 4 of the browser. A zero byte ends each message.
type Browser struct {
	send    io.Writer
	receive *bufio.Reader
	last    int              // id of the last command
	pages   map[string]*Page // the open pages by their sessions
}

// A Page is a page in a Browser. Every failure of the browser ends the test.
type Page struct {
	Console []string // messages and errors of the console, and failed requests

	t       testing.TB
	browser *Browser
	session string
}

// Start starts a browser that ends with the test. Without a browser, the test is skipped, or fails if MERCER_REQUIRE
// requires a browser.
func Start(t testing.TB) *Browser {
	t.Helper()
	ctx, stop := context.WithTimeout(context.Background(), 10*time.Minute) // ends the browser if the test hangs
	c := exec.CommandContext(ctx, chromium(t), "--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--no-first-run",
		"--disable-background-networking", "--user-data-dir="+filepath.Join(t.TempDir(), "profile"), "--remote-debugging-pipe", "about:blank")
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
	b := &Browser{send: send, receive: bufio.NewReader(receive), pages: map[string]*Page{}}
	t.Cleanup(func() {
		b.call(t, "", "Browser.close", nil, nil)
		_ = c.Wait()
		stop()
		send.Close()
		receive.Close()
	})
	return b
}

// Open shows the page at an address in a window of the given width and height, in pixels. It closes the page at the
// end of the test.
func (b *Browser) Open(t testing.TB, address string, width, height int) *Page {
	t.Helper()
	return b.open(t, address, width, height, fields{"media": "screen"})
}

// open does the work of Open. media are the parameters of the command Emulation.setEmulatedMedia.
func (b *Browser) open(t testing.TB, address string, width, height int, media fields) *Page {
	t.Helper()
	var target struct{ TargetID string }
	b.call(t, "", "Target.createTarget", fields{"url": "about:blank"}, &target)
	var session struct{ SessionID string }
	b.call(t, "", "Target.attachToTarget", fields{"targetId": target.TargetID, "flatten": true}, &session)
	p := &Page{t: t, browser: b, session: session.SessionID}
	b.pages[p.session] = p
	t.Cleanup(func() {
		delete(b.pages, p.session)
		b.call(t, "", "Target.closeTarget", fields{"targetId": target.TargetID}, nil)
	})
	p.call("Runtime.enable", nil, nil)
	p.call("Log.enable", nil, nil)
	p.call("Page.enable", nil, nil)
	p.call("Emulation.setDeviceMetricsOverride", fields{"width": width, "height": height, "deviceScaleFactor": 1, "mobile": false}, nil)
	p.call("Emulation.setEmulatedMedia", media, nil)
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

// call sends a command to the page.
func (p *Page) call(method string, parameters fields, result any) {
	p.t.Helper()
	p.browser.call(p.t, p.session, method, parameters, result)
}

// call sends a command to the page of a session, or to the browser if session is empty. It waits for the answer, and
// stores the result in `result` if that is not nil.
func (b *Browser) call(t testing.TB, session, method string, parameters fields, result any) {
	t.Helper()
	b.last++
	command := fields{"id": b.last, "method": method}
	if parameters != nil {
		command["params"] = parameters
	}
	if session != "" {
		command["sessionId"] = session
	}
	text, err := json.Marshal(command)
	if err == nil {
		_, err = b.send.Write(append(text, 0))
	}
	for err == nil {
		if text, err = b.receive.ReadBytes(0); err != nil {
			break
		}
		var m struct {
			ID                int
			Method, SessionID string
			Params, Result    json.RawMessage
			Error             *struct{ Message string }
		}
		err = json.Unmarshal(text[:len(text)-1], &m)
		switch {
		case err != nil:
		case m.Method == "Runtime.consoleAPICalled", m.Method == "Runtime.exceptionThrown", m.Method == "Log.entryAdded":
			if p := b.pages[m.SessionID]; p != nil {
				p.Console = append(p.Console, string(m.Params))
			}
		case m.ID != b.last: // an event that is not needed
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
	t.Fatalf("browser: %s: %v", method, err)
}
