package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
)

// fleetSize is how many gateways ask one Redis at most.
const fleetSize = 4

// runFleet measures one to four gateways on one Redis. They share this process and its processors, so what grows with their
// number is not the rate but what each costs the others: calls and CPU of Redis per request.
func runFleet(ctx context.Context, o options, r *report) error {
	s, err := startServer(ctx)
	if err != nil {
		return err
	}
	defer s.stop()
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	upstream := &http.Server{Handler: http.HandlerFunc(answer)}
	defer func() { _ = upstream.Close() }()
	go func() { _ = upstream.Serve(l) }()
	var addrs []string
	for range fleetSize {
		addr, stop, err := startGateway(ctx, l.Addr().String(), s.addr)
		if err != nil {
			return err
		}
		defer stop()
		addrs = append(addrs, addr)
	}
	var fronts []front
	for n := 1; n <= fleetSize; n++ {
		fronts = append(fronts,
			front{fmt.Sprintf("limited, gateways: %d", n), addrs[:n], head("/limited/1"), okStatus, s},
			front{fmt.Sprintf("tokens taken ahead, gateways: %d", n), addrs[:n], head("/ahead/1"), okStatus, s})
	}
	r.Fleet, err = competeFronts(ctx, o, fronts)
	return err
}

func answer(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, `{"ok":true}`) }
