package redisconn

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"

	"github.com/redis/go-redis/v9"
)

// oldest is the oldest Redis that the scripts are written for.
const oldest = 7

// probe touches a key as the scripts do, with every command they use. It leaves nothing.
const probe = `
redis.call('TIME')
redis.call('DEL', KEYS[1], KEYS[2])
redis.call('HSET', KEYS[1], 'tokens', '1')
redis.call('HSETNX', KEYS[1], 'ts', '1')
redis.call('HMGET', KEYS[1], 'tokens', 'ts')
redis.call('HGET', KEYS[1], 'tokens')
redis.call('HGETALL', KEYS[1])
redis.call('HDEL', KEYS[1], 'ts')
redis.call('PEXPIRE', KEYS[1], '1000')
redis.call('PERSIST', KEYS[1])
redis.call('ZADD', KEYS[2], '1', 'a')
redis.call('ZCOUNT', KEYS[2], '-inf', '+inf')
redis.call('ZRANGEBYSCORE', KEYS[2], '-inf', '+inf')
redis.call('ZREMRANGEBYSCORE', KEYS[2], '-inf', '0')
return redis.call('DEL', KEYS[1], KEYS[2])`

// Check asks a Redis, or every master of a cluster, whether it can hold buckets. warnings are what will work, but not as
// promised; the error names what cannot work and how to put it right. An unreachable server is an error of its own kind: it is
// returned as it came, and does not speak against the configuration.
func Check(ctx context.Context, client redis.UniversalClient) (warnings []string, err error) {
	cluster, ok := client.(*redis.ClusterClient)
	if !ok {
		return checkNode(ctx, client)
	}
	var mu sync.Mutex
	err = cluster.ForEachMaster(ctx, func(ctx context.Context, node *redis.Client) error {
		w, err := inspect(ctx, node)
		mu.Lock()
		defer mu.Unlock()
		for _, line := range w {
			warnings = append(warnings, node.Options().Addr+": "+line)
		}
		if err != nil {
			return fmt.Errorf("redis %s: %w", node.Options().Addr, err)
		}
		return nil
	})
	if err == nil {
		err = tryCommands(ctx, client)
	}
	return warnings, err
}

func checkNode(ctx context.Context, client redis.UniversalClient) (warnings []string, err error) {
	if warnings, err = inspect(ctx, client); err == nil {
		err = tryCommands(ctx, client)
	}
	if err != nil {
		err = fmt.Errorf("redis: %w", err)
	}
	return warnings, err
}

// inspect reads what a server says of itself.
func inspect(ctx context.Context, client redis.Cmdable) (warnings []string, err error) {
	text, err := client.Info(ctx).Result()
	if redis.HasErrorPrefix(err, "NOPERM") {
		return []string{"its user may not run INFO, so version, role and eviction policy are not known; grant +info"}, nil
	}
	if err != nil {
		return nil, err
	}
	info := fields(text)
	if v := info["redis_version"]; v != "" {
		major, _, _ := strings.Cut(v, ".")
		if n, err := strconv.Atoi(major); err == nil && n < oldest {
			return nil, fmt.Errorf("version %s is too old: at least %d.0 is needed", v, oldest)
		}
	}
	if info["role"] == "slave" {
		return nil, errors.New("this is a read-only replica; give the address of the master, or the Sentinels and the master's name")
	}
	if policy := info["maxmemory_policy"]; policy != "" && policy != "noeviction" {
		w := fmt.Sprintf("maxmemory-policy is %s: when memory runs out, buckets are evicted and start full again, and rights that "+
			"have moved can be lost; set maxmemory-policy noeviction", policy)
		if info["maxmemory"] == "0" {
			w += " (maxmemory is not set, so nothing is evicted yet)"
		}
		warnings = append(warnings, w)
	}
	return warnings, nil
}

// tryCommands runs every command the scripts use, as the configured user.
func tryCommands(ctx context.Context, client redis.UniversalClient) error {
	err := client.Eval(ctx, probe, []string{"rl:{partidor}:check", "rl:{partidor}:check:log"}).Err()
	switch {
	case err == nil:
		return nil
	case redis.HasErrorPrefix(err, "NOPERM"):
		return fmt.Errorf("the user may not do what the limiter needs: %w; grant it ~rl:* +@read +@write +@scripting +@connection +time", err)
	case redis.HasErrorPrefix(err, "OOM"):
		return fmt.Errorf("memory is used up, so no bucket can be written: %w; raise maxmemory", err)
	case strings.Contains(err.Error(), "can't run this command"), strings.Contains(err.Error(), "No permissions"),
		strings.Contains(err.Error(), "no permissions"):
		return fmt.Errorf("the user may not do what the limiter needs: %w; grant it ~rl:* +@read +@write +@scripting +@connection +time", err)
	}
	return err
}

func fields(info string) map[string]string {
	m := map[string]string{}
	for line := range strings.Lines(info) {
		if k, v, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
			m[k] = v
		}
	}
	return m
}
