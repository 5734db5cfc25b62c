package natsenv_test

import (
	"testing"

	"github.com/nats-io/nats.go"

	"partidor.dev/partidor/shared/testenv/natsenv"
)

func TestReconnectsAfterRestart(t *testing.T) {
	n := natsenv.Start(t)
	back := make(chan struct{})
	c := n.Conn(t, nats.ReconnectHandler(func(*nats.Conn) { close(back) }))
	sub, err := c.SubscribeSync("s")
	if err != nil {
		t.Fatal(err)
	}
	n.Restart()
	<-back
	if err := c.Flush(); err != nil {
		t.Fatal(err)
	}
	if err := n.Conn(t).Publish("s", []byte("x")); err != nil {
		t.Fatal(err)
	}
	if _, err := sub.NextMsgWithContext(t.Context()); err != nil {
		t.Fatal(err)
	}
}
