package bucket

import (
	"errors"
	"net"

	"github.com/redis/go-redis/v9"
)

// Untouched tells of an error of Take that certainly no bucket was touched: the call was not sent, or Redis refused to run
// it. All other errors leave that open.
func Untouched(err error) bool {
	if errors.Is(err, ErrBusy) || errors.Is(err, redis.ErrPoolExhausted) || errors.Is(err, redis.ErrPoolTimeout) {
		return true
	}
	var dial *net.OpError
	if errors.As(err, &dial) && dial.Op == "dial" {
		return true
	}
	var reply redis.Error
	return errors.As(err, &reply) && !errors.Is(err, redis.Nil)
}
