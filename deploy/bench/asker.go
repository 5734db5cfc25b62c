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
	all := hdrhistogram.New(1000, int64(time.Minute), 3)
	var mu sync.Mutex
	var failed error
	var wg sync.WaitGroup
	stop := time.Now().Add(d)
	for range callers {
		wg.Go(func() {
			waits, err := caller(ctx, f, stop)
			mu.Lock()
			defer mu.Unlock()
			all.Merge(waits)
			failed = errors.Join(failed, err)
		})
	}
	wg.Wait()
	return all, failed
}

func caller(ctx context.Context, f front, stop time.Time) (*hdrhistogram.Histogram, error) {
	waits := hdrhistogram.New(1000, int64(time.Minute), 3)
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", f.addr)
	if err != nil {
		return waits, fmt.Errorf("connect: %w", err)
	}
	defer conn.Close()
	r := bufio.NewReader(conn)
	request := []byte(f.request)
	for began := time.Now(); began.Before(stop) && ctx.Err() == nil; {
		if _, err := conn.Write(request); err != nil {
			return waits, fmt.Errorf("send: %w", err)
		}
		if err := readAnswer(r); err != nil {
			return waits, err
		}
		now := time.Now()
		_ = waits.RecordValue(max(1000, int64(now.Sub(began))))
		began = now
	}
	return waits, nil
}

var contentLength = []byte("Content-Length: ")

// readAnswer reads one answer of a known length and demands 200.
func readAnswer(r *bufio.Reader) error {
	status, err := r.ReadSlice('\n')
	if err != nil {
		return fmt.Errorf("read answer: %w", err)
	}
	if !bytes.HasPrefix(status, []byte("HTTP/1.1 200 ")) {
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
