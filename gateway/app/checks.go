package app

import (
	"fmt"
	"net"
	"time"

	"partidor.dev/partidor/gateway/internal/control/admin"
	sharedconfig "partidor.dev/partidor/shared/config"
)

// checks are what readiness depends on. The reasons are stable: alerts and balancers may go by them.
func (g *gateway) checks() []admin.Check {
	return []admin.Check{g.checkLife, g.checkRules, g.checkRedis, g.checkNATS}
}

func (g *gateway) checkLife() admin.Finding {
	switch {
	case g.draining.Load():
		return admin.Finding{Level: admin.NotReady, Reason: "draining"}
	case !g.serving.Load():
		return admin.Finding{Level: admin.NotReady, Reason: "starting"}
	}
	return admin.Finding{}
}

func (g *gateway) checkRules() admin.Finding {
	s := g.loader.Status()
	detail := fmt.Sprintf("%s at revision %s", s.Source, s.Revision)
	if !s.ConfirmedAt.IsZero() {
		detail += fmt.Sprintf(", confirmed %s ago", time.Since(s.ConfirmedAt).Round(time.Second))
	}
	if s.Err != nil {
		detail += ": " + s.Err.Error()
	}
	switch {
	case !s.Loaded:
		return admin.Finding{Level: admin.NotReady, Reason: "no rules", Detail: detail}
	case s.Stale:
		return admin.Finding{Level: admin.Degraded, Reason: "stale rules", Detail: detail}
	case s.Err != nil:
		return admin.Finding{Level: admin.Degraded, Reason: "rules source away", Detail: detail}
	}
	return admin.Finding{}
}

func (g *gateway) checkRedis() admin.Finding {
	if g.serving.Load() && g.admitter.Degraded() {
		return admin.Finding{Level: admin.Degraded, Reason: "redis away", Detail: "the local limiter decides"}
	}
	return admin.Finding{}
}

func (g *gateway) checkNATS() admin.Finding {
	if g.serving.Load() && g.nats != nil && !g.nats.IsConnected() {
		return admin.Finding{Level: admin.Degraded, Reason: "nats away", Detail: "shares stay as they are"}
	}
	return admin.Finding{}
}

// adminToken is the token of an admin port that is not on loopback.
func (g *gateway) adminToken() (string, error) {
	a := &g.config.Admin
	if tcp, ok := g.admin.Addr().(*net.TCPAddr); !ok || tcp.IP.IsLoopback() {
		return "", nil
	}
	token, err := sharedconfig.Secret("admin.token", a.TokenFile, a.TokenEnv)
	if err == nil && token == "" {
		err = &sharedconfig.Fault{Field: "admin.listen", Err: fmt.Errorf("%s is not loopback, which needs admin.token_file or admin.token_env", g.admin.Addr())}
	}
	return token, err
}
