package life

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"testing"
	"time"

	"partidor.dev/partidor/shared/bucket/redisconn"
)

// A server that is too slow to say who it is must not be asked anything else on that connection: its late answer would be taken for
// that of the next command, and every later answer for the one of the command before. Decisions and transfers would be mixed up
// between keys.
func TestNobodyTakesTheGreetingsAnswerForItsOwn(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	slow := make(chan struct{}, 1)
	slow <- struct{}{} // the first connection's
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go serveSlowly(c, slow)
		}
	}()
	w, err := New(Options{})
	if err != nil {
		t.Fatal(err)
	}
	client, err := redisconn.New(redisconn.Options{Addrs: []string{l.Addr().String()}, OpTimeout: 100 * time.Millisecond, DialTimeout: 10 * time.Second, Greet: w.Greet})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	for i := range 3 {
		want := fmt.Sprint("word ", i)
		got, err := client.Echo(context.Background(), want).Result()
		if err == nil && got != want {
			t.Errorf("command %d was answered %q, want %q", i, got, want)
		}
	}
	if len(slow) != 0 {
		t.Error("nobody was greeted slowly")
	}
}

// serveSlowly answers HELLO, INFO and ECHO. On the connection that finds something in slow the answer to INFO comes when the next
// command has been asked, before that one's.
func serveSlowly(c net.Conn, slow <-chan struct{}) {
	defer c.Close() //nolint:errcheck // a test's
	late, owed := false, ""
	select {
	case <-slow:
		late = true
	default:
	}
	for r := bufio.NewReader(c); ; {
		args, err := command(r)
		if err != nil {
			return
		}
		answer := "-ERR unknown command\r\n"
		switch name := strings.ToUpper(args[0]); {
		case name == "INFO" && late:
			owed, late = bulk("role:master\r\n"), false
			continue
		case name == "INFO":
			answer = bulk("role:master\r\n")
		case name == "ECHO":
			answer = bulk(args[1])
		}
		if _, err := io.WriteString(c, owed+answer); err != nil {
			return
		}
		owed = ""
	}
}

func bulk(text string) string { return fmt.Sprintf("$%d\r\n%s\r\n", len(text), text) }

// command reads one array of bulk strings.
func command(r *bufio.Reader) ([]string, error) {
	number := func(mark string) (int, error) {
		line, err := r.ReadString('\n')
		if err != nil {
			return 0, err
		}
		return strconv.Atoi(strings.TrimPrefix(strings.TrimSpace(line), mark))
	}
	n, err := number("*")
	if err != nil {
		return nil, err
	}
	args := make([]string, n)
	for i := range args {
		size, err := number("$")
		if err != nil {
			return nil, err
		}
		text := make([]byte, size+2)
		if _, err := io.ReadFull(r, text); err != nil {
			return nil, err
		}
		args[i] = string(text[:size])
	}
	return args, nil
}
