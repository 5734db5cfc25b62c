package wan

import (
	"bufio"
	"errors"
	"io"
	"net"
	"os"
	"strings"
	"testing"
	"time"
)

// answer starts a server that answers each line with prefix and the line.
func answer(t *testing.T, prefix string) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				for lines := bufio.NewScanner(c); lines.Scan(); {
					if _, err := io.WriteString(c, prefix+lines.Text()+"\n"); err != nil {
						return
					}
				}
			}()
		}
	}()
	return l.Addr().String()
}

type caller struct {
	net.Conn
	answers *bufio.Reader
}

func dial(t *testing.T, l *Link) caller {
	t.Helper()
	c, err := net.Dial("tcp", l.Addr())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return caller{c, bufio.NewReader(c)}
}

func (c caller) say(t *testing.T, line string) {
	t.Helper()
	if _, err := io.WriteString(c, line+"\n"); err != nil {
		t.Fatal(err)
	}
}

func (c caller) hear(t *testing.T, want string) {
	t.Helper()
	_ = c.SetReadDeadline(time.Now().Add(30 * time.Second))
	if got, err := c.answers.ReadString('\n'); err != nil || strings.TrimSpace(got) != want {
		t.Fatalf("heard %q, %v, want %q", got, err, want)
	}
}

func (c caller) hearNothing(t *testing.T) {
	t.Helper()
	_ = c.SetReadDeadline(time.Now().Add(200 * time.Millisecond))
	if got, err := c.answers.ReadString('\n'); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatalf("heard %q, %v over a stalled link", got, err)
	}
}

func TestLink(t *testing.T) {
	const delay = 40 * time.Millisecond
	l, err := New(answer(t, "a:"), delay)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	c := dial(t, l)
	begin := time.Now()
	c.say(t, "1")
	c.hear(t, "a:1")
	if took := time.Since(begin); took < 2*delay {
		t.Errorf("there and back in %s, want at least %s", took, 2*delay)
	}
	for _, d := range []Direction{Forth, Back} {
		l.Stall(d)
		c.say(t, "2")
		c.hearNothing(t)
		late := dial(t, l) // opened while nothing passes
		late.say(t, "3")
		late.hearNothing(t)
		l.Flow(d)
		c.hear(t, "a:2")
		late.hear(t, "a:3")
	}
	l.Turn(answer(t, "b:"))
	if _, err := c.answers.ReadString('\n'); err == nil {
		t.Error("a connection to the server before still stands")
	}
	c = dial(t, l)
	c.say(t, "4")
	c.hear(t, "b:4")
}

// Connections whose ends have left while nothing passed hold nobody up: a link that flows again serves at once, also a client
// that half closes.
func TestLinkOfManyThatGaveUp(t *testing.T) {
	l, err := New(answer(t, "a:"), time.Millisecond)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for _, d := range []Direction{Forth, Back} {
		l.Stall(d)
		for range 100 {
			c := dial(t, l)
			c.say(t, strings.Repeat("long ", 10_000))
			c.Close()
		}
		l.Flow(d)
		c := dial(t, l)
		c.say(t, "now")
		if err := c.Conn.(*net.TCPConn).CloseWrite(); err != nil {
			t.Fatal(err)
		}
		c.hear(t, "a:now")
		if _, err := c.answers.ReadString('\n'); !errors.Is(err, io.EOF) {
			t.Errorf("%v after the server's end, want that of the stream", err)
		}
	}
}
