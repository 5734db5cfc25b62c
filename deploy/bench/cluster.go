package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"
)

// startCluster starts a Redis Cluster of three masters on the loopback interface and waits until all see all slots covered.
func startCluster(ctx context.Context) (*server, error) {
	const masters, slots = 3, 16384
	var nodes []*server
	var buses []string
	fail := func(err error) (*server, error) {
		for _, n := range nodes {
			n.stop()
		}
		return nil, fmt.Errorf("start a cluster: %w", err)
	}
	for i := range masters {
		bus, err := freeAddr(ctx)
		if err != nil {
			return fail(err)
		}
		_, port, _ := net.SplitHostPort(bus)
		s, err := startServer(ctx, "--cluster-enabled", "yes", "--cluster-port", port)
		if err != nil {
			return fail(err)
		}
		nodes, buses = append(nodes, s), append(buses, port)
		if err := s.ctl.Do(ctx, "CLUSTER", "ADDSLOTSRANGE", i*slots/masters, (i+1)*slots/masters-1).Err(); err != nil {
			return fail(err)
		}
		if err := s.ctl.Do(ctx, "CLUSTER", "SET-CONFIG-EPOCH", i+1).Err(); err != nil {
			return fail(err)
		}
	}
	host, port, _ := net.SplitHostPort(nodes[0].addr)
	for _, n := range nodes[1:] {
		if err := n.ctl.Do(ctx, "CLUSTER", "MEET", host, port, buses[0]).Err(); err != nil {
			return fail(err)
		}
	}
	for range 600 {
		if ready(ctx, nodes) {
			nodes[0].others = nodes[1:]
			return nodes[0], nil
		}
		select {
		case <-ctx.Done():
			return fail(ctx.Err())
		case <-time.After(100 * time.Millisecond):
		}
	}
	return fail(errors.New("its nodes do not find each other"))
}

func ready(ctx context.Context, nodes []*server) bool {
	for _, n := range nodes {
		info := n.ctl.ClusterInfo(ctx).Val()
		if !strings.Contains(info, "cluster_state:ok") || !strings.Contains(info, fmt.Sprintf("cluster_known_nodes:%d", len(nodes))) {
			return false
		}
	}
	return true
}
