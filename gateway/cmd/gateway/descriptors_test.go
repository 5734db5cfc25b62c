package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"partidor.dev/partidor/shared/testenv"
)

// A gateway runs out of file descriptors: what is connected is served, and so is everybody again once some are free.
func TestFileDescriptorsExhausted(t *testing.T) {
	redis := testenv.StartRedis(t)
	upstream := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	t.Cleanup(upstream.Close)
	dir := t.TempDir()
	address := fmt.Sprintf("127.0.0.1:%d", testenv.FreePort(t))
	config := filepath.Join(dir, "gateway.yaml")
	for name, text := range map[string]string{
		config: fmt.Sprintf("region: eu\nlisten: %s\nadmin: {listen: \"127.0.0.1:%d\"}\nidentity: {mode: header}\nupstreams: {o: {targets: [{url: %q}]}}\n"+
			"routes: [{id: r, path: /r, upstream: o}]\nredis: {addresses: [%q]}\nrules: {file: %q}\ndecision: {deadline: 500ms, default: {capacity: 100000, refill_per_second: 1000}}\n",
			address, testenv.FreePort(t), upstream.URL, redis.Addr, dir+"/rules.yaml"),
		dir + "/rules.yaml": "revision: 1\n",
	} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "sh", "-c", `ulimit -n 64; exec "$0" -config "$1"`, self, config)
	cmd.Env = append(os.Environ(), "GATEWAY_RUN_MAIN=1")
	logs, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	serving := make(chan struct{})
	go func() {
		for lines := bufio.NewScanner(logs); lines.Scan(); {
			if strings.Contains(lines.Text(), `"msg":"serving"`) {
				close(serving)
			}
		}
	}()
	select {
	case <-serving:
	case <-time.After(20 * time.Second):
		t.Fatal("does not serve")
	}

	early := &http.Client{Transport: &http.Transport{}, Timeout: 5 * time.Second}
	if code, err := call(t.Context(), early, address); code != http.StatusOK {
		t.Fatalf("before: %d %v", code, err)
	}
	var idle []net.Conn
	for range 150 {
		c, err := net.DialTimeout("tcp", address, time.Second)
		if err != nil {
			break
		}
		idle = append(idle, c)
	}
	late := &http.Client{Transport: &http.Transport{}, Timeout: 300 * time.Millisecond}
	for range 20 {
		if code, err := call(t.Context(), early, address); code != http.StatusOK {
			t.Errorf("a connected client while descriptors are exhausted: %d %v", code, err)
		}
	}
	if code, _ := call(t.Context(), late, address); code == http.StatusOK {
		t.Error("descriptors were not exhausted: the test shows nothing")
	}
	for _, c := range idle {
		_ = c.Close()
	}
	deadline := time.Now().Add(15 * time.Second)
	for code := 0; code != http.StatusOK; code, err = call(t.Context(), late, address) {
		if time.Now().After(deadline) {
			t.Fatalf("not served again 15 s after descriptors were freed: %v", err)
		}
	}
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("end: %v", err)
	}
}

func call(ctx context.Context, client *http.Client, address string) (int, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+"/r", http.NoBody)
	if err != nil {
		return 0, err
	}
	req.Header.Set("X-Api-Key", "shop-a")
	resp, err := client.Do(req)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	_, err = io.Copy(io.Discard, resp.Body)
	return resp.StatusCode, err
}
