package proxy

import (
	"context"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"os"
	"strings"
	"sync"

	"golang.org/x/net/http/httpguts"

	"partidor.dev/partidor/gateway/internal/hot/respond"
	"partidor.dev/partidor/gateway/internal/hot/route"
)

// Route forwards the requests of one route. It is immutable and safe for use by many goroutines.
type Route struct {
	route    *route.Route
	settings Settings
	proxy    httputil.ReverseProxy
	attempts *attempts // the proxy's transport
	request  headerEdit
	response headerEdit
}

// Settings hold for every route.
type Settings struct {
	// TenantHeader tells upstreams the tenant; a client's own header of that name never passes.
	TenantHeader string
	// Pass names the headers that clients may send although they are Claims.
	Pass map[string]bool
	// Strip removes credentials from headers and query; nil forwards them.
	Strip func(h http.Header, rawQuery string) string
	// Log hears what ReverseProxy has to say; nil is silence.
	Log *log.Logger
}

// NewRoute forwards r to u. It goes on with the retry budget of old, the route under the configuration before; nil for none.
func NewRoute(r *route.Route, u *Upstream, s Settings, old *Route) (*Route, error) {
	var before *attempts
	if old != nil {
		before = old.attempts
	}
	t, err := newAttempts(u, r.Route, before)
	if err != nil {
		return nil, err
	}
	s.TenantHeader = http.CanonicalHeaderKey(s.TenantHeader)
	p := &Route{route: r, settings: s, attempts: t, request: newHeaderEdit(r.RequestHeaders), response: newHeaderEdit(r.ResponseHeaders)}
	p.proxy = httputil.ReverseProxy{
		Transport:      t,
		Rewrite:        p.rewrite,
		ModifyResponse: p.modify,
		ErrorHandler:   p.failed,
		BufferPool:     buffers{},
		ErrorLog:       s.Log,
	}
	return p, nil
}

// Request is what the gateway has found out about a request that is to be forwarded.
type Request struct {
	// Path is the escaped path in normal form.
	Path string
	// Tenant is empty for callers known by their address only.
	Tenant string
	// Client is the client's address; empty if unknown. Secure tells whether it came by TLS.
	Client string
	Secure bool
	// Body replaces the request\'s; nil leaves it.
	Body     io.ReadCloser
	Observer Observer
}

// Forward sends r upstream and the answer to w. It returns when the exchange has ended, whichever side ended it, and
// panics with http.ErrAbortHandler where the answer broke off, so that the client sees a broken transfer. ctx is that of r
// or descends from it.
func (p *Route) Forward(ctx context.Context, w http.ResponseWriter, r *http.Request, q *Request) {
	x := &exchange{
		Context: ctx,
		request: q,
		client:  r.Context(),
		path:    rewritePath(&p.route.Rewrite, p.route, q.Path),
		upgrade: len(r.Header["Upgrade"]) > 0,
	}
	defer x.release()
	if r.ProtoMajor == 1 && r.ContentLength != 0 {
		// An answer may begin before the request's body ends. Without this, net/http would swallow part of the body then.
		_ = http.NewResponseController(w).EnableFullDuplex() // Writers that cannot have no such body.
	}
	ctx = x
	if total := p.route.Timeouts.Total; total > 0 {
		bounded, cancel := context.WithTimeout(ctx, total)
		defer cancel()
		ctx = bounded
	}
	r = r.WithContext(ctx)
	if q.Body != nil {
		r.Body = q.Body
	}
	p.proxy.ServeHTTP(w, r)
}

// rewrite makes the upstream's request of the client's. ReverseProxy has dropped hop-by-hop headers and whatever the
// client's Connection header names before, so nothing that is set here can be stripped by a client.
func (p *Route) rewrite(pr *httputil.ProxyRequest) {
	x := exchangeOf(pr.Out.Context())
	h := pr.Out.Header
	p.setForwarded(h, pr.In, x)
	// ReverseProxy has dropped what url.ParseQuery cannot read, and put the rest in another order. It is the upstream's to read.
	pr.Out.URL.RawQuery = pr.In.URL.RawQuery
	if p.settings.Strip != nil {
		pr.Out.URL.RawQuery = p.settings.Strip(h, pr.Out.URL.RawQuery)
	}
	if host := p.route.Rewrite.Host; host != "" {
		pr.Out.Host = host
	}
	if pr.Out.Body != nil {
		x.body = &countedBody{Reader: pr.Out.Body, ended: p.passTrailers(pr)}
		pr.Out.Body = x.body
	}
	p.request.apply(h)
}

// passTrailers lets the trailers that the client announced follow its body, but for those that could speak in the gateway's
// name and those that a transport would refuse. What it returns, nil where there are none, takes their values over: they
// come behind the body, after the request was copied.
func (p *Route) passTrailers(pr *httputil.ProxyRequest) func() {
	in, out := pr.In.Trailer, pr.Out.Trailer
	for name := range out {
		if name == p.settings.TenantHeader || Claims(name) && !p.settings.Pass[name] ||
			strings.IndexByte(name, '_') >= 0 || !httpguts.ValidHeaderFieldName(name) || !httpguts.ValidTrailerHeader(name) {
			delete(out, name)
		}
	}
	if len(out) == 0 {
		pr.Out.Trailer = nil
		return nil
	}
	return func() {
		for name := range out {
			out[name] = in[name]
		}
	}
}

// setForwarded tells the upstream who the client is, in the gateway's own words only.
func (p *Route) setForwarded(h http.Header, in *http.Request, x *exchange) {
	q := x.request
	x.words = [...]string{q.Tenant, q.Client, in.Host}
	delete(h, p.settings.TenantHeader)
	if q.Tenant != "" {
		h[p.settings.TenantHeader] = x.words[0:1:1]
	}
	for name := range h {
		if Claims(name) && !p.settings.Pass[name] {
			delete(h, name)
		}
	}
	if q.Client != "" {
		h["X-Forwarded-For"] = x.words[1:2:2]
		h["X-Real-Ip"] = x.words[1:2:2]
	}
	h["X-Forwarded-Host"] = x.words[2:3:3]
	if q.Secure {
		h["X-Forwarded-Proto"] = httpsProto
	} else {
		h["X-Forwarded-Proto"] = httpProto
	}
}

var httpProto, httpsProto = []string{"http"}, []string{"https"}

// errStatus: net/http takes any three digits for a status, but sends none below 100.
var errStatus = errors.New("upstream answered with a status below 100")

func (p *Route) modify(resp *http.Response) error {
	if resp.StatusCode < 100 {
		return errStatus
	}
	x := exchangeOf(resp.Request.Context())
	p.response.apply(resp.Header)
	x.request.Observer.Response(resp.Header, resp.StatusCode)
	return nil
}

// failed answers for an upstream that did not, or for a client whose body did not come. A client that has left is told
// nothing.
func (p *Route) failed(w http.ResponseWriter, r *http.Request, err error) {
	x := exchangeOf(r.Context())
	x.request.Observer.Failed(w, x.blame(err), err)
}

// blame is the problem that err is told as; nil where the client has left.
func (x *exchange) blame(err error) *respond.Problem {
	var tooLarge *http.MaxBytesError
	body := x.bodyError()
	switch {
	case errors.Is(body, os.ErrDeadlineExceeded):
		// net/http takes a connection that cannot be read for one whose client has left, but this one still listens.
		return respond.BodyTooSlow
	case x.client.Err() != nil:
		return nil
	case errors.As(body, &tooLarge):
		return respond.BodyTooLarge
	case broken(body):
		return nil
	case body != nil:
		return respond.MalformedRequest
	case errors.Is(err, errNoTarget):
		return respond.UpstreamUnavailable
	case timedOut(err):
		return respond.UpstreamTimedOut
	}
	return respond.UpstreamFailed
}

// broken tells that a body ended with its connection.
func broken(body error) bool {
	var network net.Error
	return errors.Is(body, io.ErrUnexpectedEOF) || errors.As(body, &network)
}

// buffers lends the buffers that bodies are copied through.
type buffers struct{}

const bufferBytes = 32 << 10

var bufferPool = sync.Pool{New: func() any { return new([bufferBytes]byte) }}

// Get lends a buffer.
func (buffers) Get() []byte { return bufferPool.Get().(*[bufferBytes]byte)[:] }

// Put takes it back.
func (buffers) Put(b []byte) {
	if len(b) == bufferBytes {
		bufferPool.Put((*[bufferBytes]byte)(b))
	}
}
