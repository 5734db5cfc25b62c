package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"
)

// client speaks to the admin API.
type client struct {
	server string
	token  string
	http   *http.Client
	// progress is told how many items of a long list have come; nil for nobody.
	progress func(items int)
}

// connection is how to reach the server, from flags and environment.
type connection struct {
	server, tokenFile, caFile, certFile, keyFile string
	timeout                                      time.Duration
}

func (c *connection) open() (*client, error) {
	token := os.Getenv("PARTIDOR_TOKEN")
	if c.tokenFile != "" {
		raw, err := os.ReadFile(c.tokenFile)
		if err != nil {
			return nil, usageError{fmt.Errorf("--token-file: %w", err)}
		}
		token = strings.TrimSpace(string(raw))
	}
	if u, err := url.Parse(c.server); err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, usageError{fmt.Errorf("--server: %q is not http://host:port or https://host:port", c.server)}
	}
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if c.caFile != "" {
		pem, err := os.ReadFile(c.caFile)
		if err != nil {
			return nil, usageError{fmt.Errorf("--ca-file: %w", err)}
		}
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(pem) {
			return nil, usageError{errors.New("--ca-file: holds no certificate")}
		}
	}
	if c.certFile != "" {
		pair, err := tls.LoadX509KeyPair(c.certFile, c.keyFile)
		if err != nil {
			return nil, usageError{fmt.Errorf("--cert-file: %w", err)}
		}
		config.Certificates = []tls.Certificate{pair}
	}
	transport := &http.Transport{TLSClientConfig: config, Proxy: http.ProxyFromEnvironment}
	return &client{server: strings.TrimSuffix(c.server, "/"), token: token, http: &http.Client{Transport: transport, Timeout: c.timeout}}, nil
}

// problem is an answer that is not the wanted one.
type problem struct {
	Title  string `json:"title"`
	Status int    `json:"status"`
	Detail string `json:"detail"`
	Errors []struct {
		Field, Detail string
	} `json:"errors"`
}

func (p *problem) Error() string {
	if len(p.Errors) > 1 {
		lines := make([]string, len(p.Errors))
		for i, e := range p.Errors {
			lines[i] = "  " + e.Field + ": " + e.Detail
		}
		return p.Title + ":\n" + strings.Join(lines, "\n")
	}
	if p.Detail != "" {
		return p.Title + ": " + p.Detail
	}
	return p.Title
}

// path builds a path of escaped segments.
func path(segments ...string) string {
	var b strings.Builder
	b.WriteString("/v1")
	for _, s := range segments {
		b.WriteString("/" + url.PathEscape(s))
	}
	return b.String()
}

// call is one request.
type call struct {
	method, path string
	query        url.Values
	body         any
	// match is the revision that must still hold; absent that nothing is there.
	match  string
	absent bool
}

// do sends c and reads the answer into into, unless that is nil.
func (c *client) do(ctx context.Context, r call, into any) error {
	var body io.Reader
	if r.body != nil {
		data, err := json.Marshal(r.body)
		if err != nil {
			return err
		}
		body = bytes.NewReader(data)
	}
	target := c.server + r.path
	if len(r.query) > 0 {
		target += "?" + r.query.Encode()
	}
	req, err := http.NewRequestWithContext(ctx, r.method, target, body)
	if err != nil {
		return err
	}
	if r.body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if c.token != "" {
		req.Header.Set("Authorization", "Bearer "+c.token)
	}
	if r.match != "" {
		req.Header.Set("If-Match", `"`+r.match+`"`)
	}
	if r.absent {
		req.Header.Set("If-None-Match", "*")
	}
	res, err := c.http.Do(req)
	if err != nil {
		return fmt.Errorf("%w (is --server right?)", err)
	}
	defer res.Body.Close()
	if res.StatusCode >= http.StatusBadRequest {
		p := &problem{Status: res.StatusCode, Title: res.Status}
		_ = json.NewDecoder(res.Body).Decode(p) // the status alone says enough
		p.Status = res.StatusCode
		if p.Status == http.StatusUnauthorized {
			p.Detail = "give a token by PARTIDOR_TOKEN or --token-file"
		}
		return p
	}
	if into == nil || res.StatusCode == http.StatusNoContent {
		return nil
	}
	if err := json.NewDecoder(res.Body).Decode(into); err != nil {
		return fmt.Errorf("%s %s: answer not understood: %w", r.method, r.path, err)
	}
	return nil
}

// item is a JSON object as the server sent it: commands print what they know and keep the rest.
type item = map[string]any

type page struct {
	Items []item `json:"items"`
	Next  string `json:"next"`
}

// list reads up to limit items, page by page; 0 means all. more tells whether there are more.
func (c *client) list(ctx context.Context, path string, query url.Values, limit int) (items []item, more bool, err error) {
	const most = 1000
	q := url.Values{}
	for k, v := range query {
		if len(v) > 0 && v[0] != "" {
			q[k] = v
		}
	}
	for {
		size := most
		if limit > 0 {
			size = min(most, limit-len(items))
		}
		q.Set("size", fmt.Sprint(size))
		var p page
		if err := c.do(ctx, call{method: http.MethodGet, path: path, query: q}, &p); err != nil {
			return nil, false, err
		}
		items = append(items, p.Items...)
		if p.Next == "" || limit > 0 && len(items) >= limit {
			return items, p.Next != "", nil
		}
		if c.progress != nil {
			c.progress(len(items))
		}
		q.Set("page", p.Next)
	}
}
