package api

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// Page is one page of a list. Next is empty on the last page, else what the parameter page of the next request must be.
type Page[T any] struct {
	Items []T    `json:"items"`
	Next  string `json:"next,omitempty"`
}

const (
	defaultPage = 100
	maxPage     = 1000
)

// query reads the parameters of a request and refuses unknown ones, so that a misspelt filter never means "all".
type query struct {
	values url.Values
}

func queryOf(r *http.Request, known ...string) (*query, error) {
	q := &query{values: r.URL.Query()}
	for name, values := range q.values {
		if !slices.Contains(known, name) {
			there := "there are none"
			if len(known) > 0 {
				there = "there are " + strings.Join(known, ", ")
			}
			return nil, badRequest(name, "no such parameter; "+there)
		}
		if len(values) > 1 {
			return nil, badRequest(name, "given more than once")
		}
	}
	return q, nil
}

func (q *query) text(name string) string { return q.values.Get(name) }

func (q *query) size() (int, error) {
	s := q.values.Get("size")
	if s == "" {
		return defaultPage, nil
	}
	n, err := strconv.Atoi(s)
	if err != nil || n < 1 || n > maxPage {
		return 0, badRequest("size", fmt.Sprintf("%q, must be from 1 to %d", s, maxPage))
	}
	return n, nil
}

// after reads the position that a former page ended at; n parts, all "" at the start.
func (q *query) after(n int) ([]string, error) {
	token := q.values.Get("page")
	parts := make([]string, n)
	if token == "" {
		return parts, nil
	}
	raw, err := base64.RawURLEncoding.DecodeString(token)
	if err != nil {
		return nil, badRequest("page", "not a page of this list")
	}
	found := strings.Split(string(raw), "\x00") // no name holds a NUL
	if len(found) != n {
		return nil, badRequest("page", "not a page of this list")
	}
	return found, nil
}

// listing answers one page of a list that is kept elsewhere. filters are the parameters beside those of paging; read gets where
// the last page ended, in as many parts as position tells, and how many items are wanted.
func listing[T any](r *http.Request, filters []string, parts int, position func(T) []string,
	read func(q *query, after []string, limit int) ([]T, error)) (any, error) {
	q, err := queryOf(r, append(filters, paged...)...)
	if err != nil {
		return nil, err
	}
	size, err := q.size()
	if err != nil {
		return nil, err
	}
	after, err := q.after(parts)
	if err != nil {
		return nil, err
	}
	items, err := read(q, after, size+1)
	if err != nil {
		return nil, err
	}
	return pageOf(items, size, position), nil
}

// pageOf cuts the one item too many that was asked for to see whether there are more.
func pageOf[T any](items []T, size int, position func(T) []string) Page[T] {
	p := Page[T]{Items: items}
	if len(items) > size {
		p.Items = items[:size]
		p.Next = base64.RawURLEncoding.EncodeToString([]byte(strings.Join(position(items[size-1]), "\x00")))
	}
	if p.Items == nil {
		p.Items = []T{}
	}
	return p
}
