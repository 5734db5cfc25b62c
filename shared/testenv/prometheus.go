package testenv

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os/exec"
	"testing"
	"time"
)

// Prometheus is a running server.
type Prometheus struct {
	URL string
}

// StartPrometheus starts a server with the configuration file until the test ends. What it has scraped is forgotten then.
func StartPrometheus(tb testing.TB, configFile string) *Prometheus {
	tb.Helper()
	p := &Prometheus{URL: fmt.Sprintf("http://127.0.0.1:%d", FreePort(tb))}
	StartProgram(tb, []string{installed(tb, "prometheus"), "--config.file=" + configFile, "--storage.tsdb.path=" + tb.TempDir(),
		"--web.listen-address=" + p.URL[len("http://"):], "--enable-feature=exemplar-storage", "--log.level=warn"})
	Eventually(tb, startTimeout, func() error {
		resp, err := http.Get(p.URL + "/-/ready")
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		if resp.StatusCode != http.StatusOK {
			return fmt.Errorf("prometheus is not ready: %s", resp.Status)
		}
		return nil
	})
	return p
}

// Sample is one element of an instant vector, or the one of a scalar.
type Sample struct {
	Labels map[string]string
	Value  string
}

// Query evaluates an expression now.
func (p *Prometheus) Query(expression string) ([]Sample, error) {
	var answer struct {
		Data struct {
			ResultType string
			Result     json.RawMessage
		}
	}
	if err := p.Get("/api/v1/query", url.Values{"query": {expression}}, &answer); err != nil {
		return nil, err
	}
	switch answer.Data.ResultType {
	case "vector":
		var list []struct {
			Metric map[string]string
			Value  [2]any
		}
		if err := json.Unmarshal(answer.Data.Result, &list); err != nil {
			return nil, err
		}
		samples := make([]Sample, len(list))
		for i, s := range list {
			samples[i] = Sample{Labels: s.Metric, Value: fmt.Sprint(s.Value[1])}
		}
		return samples, nil
	case "scalar":
		var value [2]any
		if err := json.Unmarshal(answer.Data.Result, &value); err != nil {
			return nil, err
		}
		return []Sample{{Value: fmt.Sprint(value[1])}}, nil
	}
	return nil, fmt.Errorf("a result of type %s", answer.Data.ResultType)
}

// Get asks the server's API and decodes its answer. An error tells what Prometheus has to say.
func (p *Prometheus) Get(path string, query url.Values, into any) error {
	client := http.Client{Timeout: 30 * time.Second}
	resp, err := client.Get(p.URL + path + "?" + query.Encode())
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	var raw json.RawMessage
	if err := json.NewDecoder(resp.Body).Decode(&raw); err != nil {
		return fmt.Errorf("%s: %s: %w", path, resp.Status, err)
	}
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s: %s", path, resp.Status, raw)
	}
	return json.Unmarshal(raw, into)
}

// Promtool runs promtool, which comes with Prometheus, and returns its output and whether it was content.
func Promtool(tb testing.TB, args ...string) (output string, err error) {
	tb.Helper()
	out, err := exec.Command(installed(tb, "promtool"), args...).CombinedOutput()
	return string(out), err
}

// installed is the path of a program that has no image here: it must be installed.
func installed(tb testing.TB, name string) string {
	tb.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		tb.Fatalf("%s is not installed (%v); install it with: make deps", name, err)
	}
	return path
}
