package console

import (
	"io/fs"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
)

func TestEveryAssetIsServedUnderThePolicy(t *testing.T) {
	h, err := Handler("/console/")
	if err != nil {
		t.Fatal(err)
	}
	get := func(path, tag string) *httptest.ResponseRecorder {
		r := httptest.NewRequest(http.MethodGet, path, nil)
		r.Header.Set("If-None-Match", tag)
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		return w
	}
	w := get("/console/", "")
	if w.Code != http.StatusOK || !strings.Contains(w.Body.String(), "<title>Partidor</title>") {
		t.Fatalf("the page: %d", w.Code)
	}
	if p := w.Header().Get("Content-Security-Policy"); !strings.Contains(p, "default-src 'none'") || strings.Contains(p, "unsafe") {
		t.Errorf("policy %q", p)
	}
	if w := get("/console/", w.Header().Get("ETag")); w.Code != http.StatusNotModified {
		t.Errorf("asked again: %d, want 304", w.Code)
	}
	for _, m := range regexp.MustCompile(`(?:src|href)="([^"#]+)"`).FindAllStringSubmatch(w.Body.String(), -1) {
		if w := get("/console/"+m[1], ""); w.Code != http.StatusOK {
			t.Errorf("the page wants %s: %d", m[1], w.Code)
		}
	}
	if w := get("/console/../console.go", ""); w.Code != http.StatusNotFound {
		t.Errorf("outside of the assets: %d", w.Code)
	}
}

// TestNoOutsideRequestsAndNoMarkup: the page asks nobody else, and never makes markup of data.
func TestNoOutsideRequestsAndNoMarkup(t *testing.T) {
	err := fs.WalkDir(embedded, "assets", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || strings.Contains(name, "vendor/") {
			return err
		}
		body, err := embedded.ReadFile(name)
		if err != nil {
			return err
		}
		for _, bad := range []string{"innerHTML", "outerHTML", "insertAdjacentHTML", "eval(", "document.write", "https://", "style=\""} {
			if strings.Contains(string(body), bad) {
				t.Errorf("%s holds %s", name, bad)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
