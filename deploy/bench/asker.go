package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"sync"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// ask sends a front's request from so many callers for d, each again as soon as it is answered, over a connection of its
// own. Callers read no more of an answer than they must, as wrk does, so that most of what is measured is the front's.
func ask(ctx context.Context, f front, callers int, d time.Duration) (*hdrhistogram.Histogram, error) {
	stop := time.Now().Add(d)
	return together(callers, func(i int) (*hdrhistogram.Histogram, error) { return caller(ctx, f, i, stop) })
}

// together runs so many callers at once and merges what they waited.
func together(callers int, call func(i int) (*hdrhistogram.Histogram, error)) (*hdrhistogram.Histogram, error) {
	all := hdrhistogram.New(1000, int64(time.Minute), 3)
	var mu sync.Mutex
	var failed error
	var wg sync.WaitGroup
	for i := range callers {
		wg.Go(func() {
			waits, err := call(i)
			mu.Lock()
			defer mu.Unlock()
			all.Merge(waits)
			failed = errors.Join(failed, err)
		})
	}
	wg.Wait()
	return all, failed
}

func caller(ctx context.Context, f front, i int, stop time.Time) (*hdrhistogram.Histogram, error) {
	waits := hdrhistogram.New(1000, int64(time.Minute), 3)
	c, err := dial(ctx, f, i)
	if err != nil {
		return waits, err
	}
	defer c.close()
	for began := time.Now(); began.Before(stop) && ctx.Err() == nil; {
		if err := c.exchange(); err != nil {
			return waits, err
		}
		now := time.Now()
		_ = waits.RecordValue(max(1000, int64(now.Sub(began))))
		began = now
	}
	return waits, nil
}

// line is one caller's connection to a front.
type line struct {
	conn    net.Conn
	r       *bufio.Reader
	request []byte
	status  []byte
}

func dial(ctx context.Context, f front, i int) (*line, error) {
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", f.addrs[i%len(f.addrs)])
	if err != nil {
		return nil, fmt.Errorf("connect: %w", err)
	}
	return &line{conn, bufio.NewReader(conn), []byte(f.request), []byte(f.status)}, nil
}

func (c *line) close() { _ = c.conn.Close() }

// exchange sends the request and reads the answer.
func (c *line) exchange() error {
	if _, err := c.conn.Write(c.request); err != nil {
		return fmt.Errorf("send: %w", err)
	}
	return readAnswer(c.r, c.status)
}

var contentLength = []byte("Content-Length: ")

// readAnswer reads one answer of a known length, whose first line must begin with want.
func readAnswer(r *bufio.Reader, want []byte) error {
	status, err := r.ReadSlice('\n')
	if err != nil {
		return fmt.Errorf("read answer: %w", err)
	}
	if !bytes.HasPrefix(status, want) {
		return fmt.Errorf("answered %q", bytes.TrimSpace(status))
	}
	length := -1
	for {
		line, err := r.ReadSlice('\n')
		if err != nil {
			return fmt.Errorf("read head: %w", err)
		}
		if len(line) == 2 {
			break
		}
		if v, ok := bytes.CutPrefix(line, contentLength); ok {
			if length, err = strconv.Atoi(string(bytes.TrimSpace(v))); err != nil {
				return fmt.Errorf("read length: %w", err)
			}
		}
	}
	if length < 0 {
		return errors.New("an answer without length")
	}
	if _, err := io.CopyN(io.Discard, r, int64(length)); err != nil {
		return fmt.Errorf("read body: %w", err)
	}
	return nil
}
