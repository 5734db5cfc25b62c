package console

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"io/fs"
	"net/http"
	"path"
	"strings"
)

//go:embed assets
var embedded embed.FS

// policy lets the page load its own files and speak to its own server, and nothing else. uPlot sizes its elements through
// the style object, which style-src does not forbid.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; " +
	"form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

type asset struct {
	body []byte
	kind string
	tag  string
}

var kinds = map[string]string{
	".html": "text/html; charset=utf-8", ".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".svg": "image/svg+xml",
}

// Handler serves the page at prefix, which ends with a slash.
func Handler(prefix string) (http.Handler, error) {
	assets := map[string]asset{}
	err := fs.WalkDir(embedded, "assets", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		body, err := embedded.ReadFile(name)
		if err != nil {
			return err
		}
		sum := sha256.Sum256(body)
		kind, ok := kinds[path.Ext(name)]
		if !ok {
			kind = "text/plain; charset=utf-8"
		}
		assets[strings.TrimPrefix(name, "assets/")] = asset{body: body, kind: kind, tag: `"` + hex.EncodeToString(sum[:8]) + `"`}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name := strings.TrimPrefix(r.URL.Path, prefix)
		if name == "" {
			name = "index.html"
		}
		a, ok := assets[name]
		if !ok {
			http.NotFound(w, r)
			return
		}
		h := w.Header()
		h.Set("Content-Security-Policy", policy)
		h.Set("Content-Type", a.kind)
		h.Set("Cache-Control", "no-cache") // asked for again each time, answered with 304
		h.Set("ETag", a.tag)
		if r.Header.Get("If-None-Match") == a.tag {
			w.WriteHeader(http.StatusNotModified)
			return
		}
		_, _ = w.Write(a.body) // the browser may have gone
	}), nil
}
