// Command gubernator measures github.com/gubernator-io/gubernator as a peer of `make bench`: one node of it, asked in process, or over
// gRPC in a process of its own. It stands in a module outside the workspace, because it brings the clients of etcd and Kubernetes, and says
// what it measured as one line of JSON.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"time"

	guber "github.com/gubernator-io/gubernator/v2"
	"github.com/sirupsen/logrus"
)

// sample has the fields of the bench's own.
type sample struct {
	Decisions int64         `json:"decisions"`
	PerSecond float64       `json:"per_second"`
	P50       time.Duration `json:"p50_ns"`
	P99       time.Duration `json:"p99_ns"`
	ClientCPU float64       `json:"client_cpu_us"` // per decision, callers and gubernator together
}

func main() {
	serve := flag.Bool("serve", false, "be a node: say its address, and end with the standard input")
	wire := flag.Bool("grpc", false, "ask a node in a process of its own")
	l := load{}
	flag.IntVar(&l.keys, "keys", 10_000, "distinct keys")
	flag.IntVar(&l.callers, "callers", 32, "callers, each asking again as soon as it is answered")
	flag.DurationVar(&l.round, "round", time.Second, "how long")
	flag.Parse()
	err := run(context.Background(), *serve, *wire, l)
	if err != nil {
		fmt.Fprintln(os.Stderr, "gubernator:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, serve, wire bool, l load) error {
	if wire && !serve {
		return overGRPC(ctx, l)
	}
	node, err := start(ctx)
	if err != nil {
		return err
	}
	defer node.Close()
	if serve {
		fmt.Println(node.Config().GRPCListenAddress)
		_, err := io.Copy(io.Discard, os.Stdin)
		return err
	}
	return say(l.measure(ctx, node.V1Server.GetRateLimits, ownCPU))
}

func say(s sample, err error) error {
	if err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(s)
}

// start is one node, its own only peer, with room for every key.
func start(ctx context.Context) (*guber.Daemon, error) {
	quiet := logrus.New()
	quiet.SetOutput(io.Discard)
	var addrs [2]string
	for i := range addrs {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		addrs[i] = l.Addr().String()
		_ = l.Close()
	}
	node, err := guber.SpawnDaemon(ctx, guber.DaemonConfig{
		GRPCListenAddress: addrs[0], HTTPListenAddress: addrs[1], AdvertiseAddress: addrs[0], CacheSize: 200_000,
		PeerDiscoveryType: "none", Logger: quiet,
	})
	if err != nil {
		return nil, fmt.Errorf("start a node: %w", err)
	}
	node.SetPeers([]guber.PeerInfo{{GRPCAddress: addrs[0], IsOwner: true}})
	return node, nil
}

// overGRPC asks a node that is this program again.
func overGRPC(ctx context.Context, l load) (err error) {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	node := exec.CommandContext(ctx, self, "-serve")
	node.Stderr = os.Stderr
	in, err := node.StdinPipe()
	if err != nil {
		return err
	}
	out, err := node.StdoutPipe()
	if err != nil {
		return err
	}
	if err := node.Start(); err != nil {
		return err
	}
	defer func() {
		_ = in.Close()
		err = errors.Join(err, node.Wait())
	}()
	addr, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		return fmt.Errorf("hear of the node: %w", err)
	}
	client, err := guber.DialV1Server(addr[:len(addr)-1], nil)
	if err != nil {
		return fmt.Errorf("reach the node: %w", err)
	}
	ask := func(ctx context.Context, r *guber.GetRateLimitsReq) (*guber.GetRateLimitsResp, error) {
		return client.GetRateLimits(ctx, r)
	}
	return say(l.measure(ctx, ask, func() time.Duration { return ownCPU() + processCPU(node.Process.Pid) }))
}
