package hot

import (
	"context"
	"errors"
	"net/http"
	"net/netip"
	"time"

	"go.opentelemetry.io/otel/trace"
	"golang.org/x/net/http/httpguts"

	"partidor.dev/partidor/gateway/internal/hot/admit"
	"partidor.dev/partidor/gateway/internal/hot/identify"
	"partidor.dev/partidor/gateway/internal/hot/proxy"
	"partidor.dev/partidor/gateway/internal/hot/respond"
	"partidor.dev/partidor/gateway/internal/hot/route"
	"partidor.dev/partidor/shared/limit"
)

// exchange is one request from its head to its answer's end.
type exchange struct {
	handler    *Handler
	generation *generation
	began      time.Time
	in         *http.Request
	recorder   respond.Recorder

	client    netip.Addr
	hasClient bool
	route     *servedRoute // nil until known
	tenant    string
	decided   bool
	decision  limit.Decision
	request   proxy.Request
	prompt    *promptBody // The body on its way upstream; nil before, and where there is none.
	cause     error       // What went wrong upstream.

	span    trace.Span
	traced  bool // span may be more than noSpan
	attempt attempt
}

// serve goes through the stages. Whatever refuses the request has answered it.
func (x *exchange) serve(ctx context.Context) {
	x.endDoubtful()
	dropTwins(x.in.Header, x.generation.keepUnderscores)
	if !x.admitAddress() {
		return
	}
	if method := x.generation.responder.PreflightMethod(x.in); method != "" {
		x.preflight(method)
		return
	}
	match, ok := x.findRoute()
	if !ok || !x.identify() || !x.acceptBody() {
		return
	}
	release, ok := x.enter()
	if !ok {
		return
	}
	defer release()
	if !x.admit(ctx) {
		return
	}
	if x.gone() {
		return
	}
	dropUpgrade(x.in.Header, x.route.upgrades)
	x.request = proxy.Request{
		Path:     match.Path,
		Tenant:   x.tenant,
		Secure:   x.generation.secure(x.in),
		Body:     x.body(),
		Observer: x,
	}
	if x.hasClient {
		x.request.Client = x.client.String()
	}
	x.route.proxy.Forward(ctx, &x.recorder, x.in, &x.request)
	if x.prompt != nil && x.recorder.Header().Get("Connection") != "close" {
		x.prompt.release()
	}
}

// gone tells that the client has left. Nobody is there to answer.
func (x *exchange) gone() bool { return x.in.Context().Err() != nil }

// admitAddress finds the client's address and asks the lists and the guard.
func (x *exchange) admitAddress() bool {
	g := x.generation
	x.client, x.hasClient = g.addresses.Client(x.in)
	if !x.hasClient {
		return true // Routes that need the address refuse; nobody else's guard counts the request.
	}
	switch g.addresses.Listed(x.client, x.began) {
	case identify.Denied:
		x.refuse(respond.AddressDenied, 0)
		return false
	case identify.Allowed:
		return true
	}
	if g.guard == nil {
		return true
	}
	look := g.guard.Count
	if g.guardFailures {
		look = g.guard.Check
	}
	if wait, ok := look(g.addresses.Network(x.client), x.began); !ok {
		x.refuse(respond.AddressLimited, wait)
		return false
	}
	return true
}

// countFailure lets a guard that counts only failures know of one.
func (x *exchange) countFailure() {
	if g := x.generation; g.guard != nil && g.guardFailures && x.hasClient {
		g.guard.Count(g.addresses.Network(x.client), x.began)
	}
}

func (x *exchange) preflight(method string) {
	match, err := x.generation.table.Match(x.in.Host, method, x.in.URL.EscapedPath())
	if err != nil {
		x.refuseRoute(err)
		return
	}
	x.route = &x.generation.routes[match.Route.Index]
	x.generation.responder.Preflight(&x.recorder, x.in)
}

func (x *exchange) findRoute() (route.Match, bool) {
	// net/http judges the Host header, not the host of an absolute-form target, which then takes the header's place.
	if !httpguts.ValidHostHeader(x.in.Host) {
		x.refuse(respond.MalformedRequest, 0)
		return route.Match{}, false
	}
	match, err := x.generation.table.Match(x.in.Host, x.in.Method, x.in.URL.EscapedPath())
	if err != nil {
		x.refuseRoute(err)
		return match, false
	}
	x.route = &x.generation.routes[match.Route.Index]
	if !x.handler.opts.Ready() {
		x.refuse(respond.NotReady, time.Second)
		return match, false
	}
	return match, true
}

func (x *exchange) refuseRoute(err error) {
	if errors.Is(err, route.ErrAmbiguous) {
		x.refuse(respond.AmbiguousPath, 0)
		return
	}
	x.refuse(respond.NotFound, 0)
}

// identify names the tenant: the credential's, or on anonymous routes the client's network.
func (x *exchange) identify() bool {
	var err error
	x.tenant, err = x.generation.identifier.Tenant(x.in, x.began, x.handler.opts.Tenants())
	switch {
	case err == nil:
		return true
	case errors.Is(err, identify.ErrMissing):
		if x.route.Anonymous {
			if !x.hasClient {
				x.refuse(respond.AddressUnknown, 0)
			}
			return x.hasClient
		}
		x.countFailure()
		x.refuse(respond.CredentialMissing, 0)
	case errors.Is(err, identify.ErrUnknown):
		x.countFailure()
		x.refuse(respond.CredentialUnknown, 0)
	case errors.Is(err, identify.ErrAmbiguous):
		x.countFailure()
		x.refuse(respond.CredentialAmbiguous, 0)
	default:
		x.countFailure()
		x.refuse(respond.CredentialMalformed, 0)
	}
	return false
}

// limitedAs is the tenant of the bucket: the own one, or the name of the client's network.
func (x *exchange) limitedAs() string {
	if x.tenant == "" {
		return x.generation.addresses.Tenant(x.client)
	}
	return x.tenant
}

func (x *exchange) admit(ctx context.Context) bool {
	if x.route.Unlimited {
		return true
	}
	x.decision = x.handler.opts.Admitter.Admit(ctx, x.began, admit.Request{
		Tenant: x.limitedAs(),
		Route:  x.route.ID,
		Cost:   x.route.cost,
	})
	x.decided = true
	if x.decision.Outcome == limit.Allowed {
		return true
	}
	if !x.gone() {
		x.refuse(respond.Refusal(&x.decision), x.decision.RetryAfter)
	}
	return false
}

// Response completes the upstream's headers.
func (x *exchange) Response(h http.Header, _ int) {
	if x.prompt != nil && !x.prompt.ended.Load() {
		x.prompt.stream()
	}
	if _, told := h["Content-Type"]; !told {
		// What the upstream left open is not for net/http to guess from the body.
		x.recorder.Header()["Content-Type"] = nil
	}
	var d *limit.Decision
	if x.decided {
		d = &x.decision
	}
	x.generation.responder.Decorate(h, x.in, d)
}

// Failed answers for an upstream that did not. Without a problem the client has left.
func (x *exchange) Failed(_ http.ResponseWriter, p *respond.Problem, cause error) {
	x.cause = cause
	if p != nil {
		x.refuse(p, 0)
	}
}
