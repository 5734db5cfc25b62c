package main

import (
	"context"
	"errors"
	"fmt"

	"os"
	"syscall"
	"time"

	"github.com/containerd/errdefs"
	"github.com/moby/moby/api/pkg/stdcopy"
	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/client"
	"github.com/testcontainers/testcontainers-go"
	"github.com/testcontainers/testcontainers-go/log"
)

// startWithin bounds the start, which may have to fetch the image first.
const startWithin = 5 * time.Minute

// server is what to run, and how.
type server struct {
	image, dir, user string
	mounts           []string
	command          []string
}

// run is the life of the container. It returns the exit status of the server.
func (s *server) run(ctx context.Context, signals <-chan os.Signal, orphaned <-chan struct{}) (code int, err error) {
	provider, err := testcontainers.NewDockerProvider(testcontainers.WithLogger(log.NewNoopLogger()))
	if err != nil {
		return 0, fmt.Errorf("docker: %w", err)
	}
	starting, cancel := context.WithTimeout(ctx, startWithin)
	defer cancel()
	c, err := provider.RunContainer(starting, s.request())
	if c != nil {
		defer func() { err = errors.Join(err, c.Terminate(ctx, testcontainers.StopTimeout(0))) }()
	}
	if err != nil {
		return 0, fmt.Errorf("start %s in a container of %s: %w", s.command[0], s.image, err)
	}
	docker := provider.Client()
	logs, err := docker.ContainerLogs(ctx, c.GetContainerID(), client.ContainerLogsOptions{ShowStdout: true, ShowStderr: true, Follow: true})
	if err != nil {
		return 0, fmt.Errorf("follow the output: %w", err)
	}
	copied := make(chan struct{})
	go func() {
		defer close(copied)
		_, _ = stdcopy.StdCopy(os.Stdout, os.Stderr, logs) //nolint:errcheck // ends with the container
	}()
	defer func() { <-copied; _ = logs.Close() }()
	ended := docker.ContainerWait(ctx, c.GetContainerID(), client.ContainerWaitOptions{Condition: container.WaitConditionNotRunning})
	for {
		select {
		case sig := <-signals:
			if err := pass(ctx, docker, c.GetContainerID(), sig); err != nil {
				return 0, err
			}
		case <-orphaned:
			orphaned = nil
			if err := pass(ctx, docker, c.GetContainerID(), syscall.SIGUSR1); err != nil {
				return 0, err
			}
		case end := <-ended.Result:
			return int(end.StatusCode), nil
		case err := <-ended.Error:
			return 0, fmt.Errorf("wait for the end: %w", err)
		}
	}
}

func (s *server) request() testcontainers.ContainerRequest {
	return testcontainers.ContainerRequest{
		Image: s.image,
		// The images' own entry points change users and owners; the server is to run exactly as it would on this machine.
		Entrypoint: s.command[:1],
		Cmd:        s.command[1:],
		ConfigModifier: func(c *container.Config) {
			c.User, c.WorkingDir = s.user, s.dir
		},
		HostConfigModifier: func(h *container.HostConfig) {
			h.NetworkMode = "host"
			for _, path := range s.mounts {
				h.Binds = append(h.Binds, path+":"+path)
			}
			h.Init = new(true) // the first process of a container ignores signals that it does not handle
		},
	}
}

// pass hands a signal on. The server may have ended meanwhile, which is no fault.
func pass(ctx context.Context, docker client.APIClient, id string, sig os.Signal) (err error) {
	switch sig {
	case syscall.SIGTSTP:
		_, err = docker.ContainerPause(ctx, id, client.ContainerPauseOptions{})
	case syscall.SIGCONT:
		_, err = docker.ContainerUnpause(ctx, id, client.ContainerUnpauseOptions{})
	default:
		names := map[os.Signal]string{syscall.SIGTERM: "SIGTERM", syscall.SIGINT: "SIGINT", syscall.SIGQUIT: "SIGQUIT", syscall.SIGUSR1: "SIGKILL"}
		_, err = docker.ContainerKill(ctx, id, client.ContainerKillOptions{Signal: names[sig]})
	}
	if errdefs.IsNotFound(err) || errdefs.IsConflict(err) {
		return nil // has ended, or is not frozen
	}
	if err != nil {
		return fmt.Errorf("pass %s on: %w", sig, err)
	}
	return nil
}
