// Command incontainer is a server in a container that looks like a process of this machine: its output is the server's, the
// signals it gets are passed on, and it ends with the server. The package testenv runs it instead of a program that is not
// installed, where a Docker engine answers. It is a program of its own so that tests need not link a client of Docker.
//
//	incontainer -image IMAGE -dir DIR [-mount PATH ...] [-user UID:GID] PROGRAM [ARGUMENT ...]
//
// The container shares the machine's network and, as they are, the paths that are mounted. SIGTERM, SIGINT and SIGQUIT reach
// the server as they are; SIGUSR1 stands for SIGKILL, SIGTSTP for freezing it and SIGCONT for letting it go on. When standard
// input ends, by the death of whoever started this, the container is removed.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
)

func main() { os.Exit(run()) }

func run() int {
	var s server
	flag.StringVar(&s.image, "image", "", "`image` that holds the program")
	flag.StringVar(&s.dir, "dir", "", "`directory` to work in")
	flag.Func("mount", "`path` to share with the container; may be repeated", func(path string) error {
		s.mounts = append(s.mounts, path)
		return nil
	})
	flag.StringVar(&s.user, "user", "", "`uid:gid` to run as")
	flag.Parse()
	s.command = flag.Args()
	if s.image == "" || s.dir == "" || len(s.command) == 0 {
		flag.Usage()
		return 2
	}
	// The container ends with this process, see orphaned: no container is needed that removes others.
	if err := os.Setenv("TESTCONTAINERS_RYUK_DISABLED", "true"); err != nil {
		fmt.Fprintln(os.Stderr, "incontainer:", err)
		return 1
	}
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGUSR1, syscall.SIGTSTP, syscall.SIGCONT)
	orphaned := make(chan struct{})
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		close(orphaned)
	}()
	code, err := s.run(context.Background(), signals, orphaned)
	if err != nil {
		fmt.Fprintln(os.Stderr, "incontainer:", err)
		return 1
	}
	return code
}
