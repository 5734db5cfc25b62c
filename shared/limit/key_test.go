package limit

import (
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestKeyRedis(t *testing.T) {
	for _, tt := range []struct {
		name string
		key  Key
		want string
	}{
		{"plain", Key{"shop-a", "create-order"}, "rl:{shop-a}:create-order"},
		{"tenant limit", Key{"shop-a", TenantRoute}, "rl:{shop-a}:@tenant"},
		{"braces", Key{"a}b{c", "r"}, "rl:{a%7Db%7Bc}:r"},
		{"colon", Key{"a:b", "c"}, "rl:{a%3Ab}:c"},
		{"percent", Key{"100%", "r"}, "rl:{100%25}:r"},
		{"control bytes", Key{"a\x00b\x7f", "r\n"}, "rl:{a%00b%7F}:r%0A"},
		{"not ASCII", Key{"büro", "ä"}, "rl:{büro}:ä"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := tt.key.Redis(); got != tt.want {
				t.Errorf("Redis() = %q, want %q", got, tt.want)
			}
			back, err := ParseRedis(tt.want)
			if err != nil || back != tt.key {
				t.Errorf("ParseRedis(%q) = %v, %v", tt.want, back, err)
			}
		})
	}
}

// Distinct keys have distinct buckets, and the hash tag is always the whole tenant.
func TestKeyRedisIsInjective(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		part := rapid.StringOfN(rapid.SampledFrom([]rune("ab{}:%\x00\x1f7DE")), 0, 6, -1)
		k := Key{part.Draw(t, "tenant"), part.Draw(t, "route")}
		name := k.Redis()
		back, err := ParseRedis(name)
		if err != nil || back != k {
			t.Fatalf("%q -> %q -> %v, %v", k, name, back, err)
		}
		tag := name[strings.IndexByte(name, '{')+1 : strings.IndexByte(name, '}')]
		if got, err := unescape(tag); err != nil || got != k.Tenant {
			t.Fatalf("hash tag %q of %q is not the tenant %q", tag, name, k.Tenant)
		}
	})
}

func TestAppendRedisDoesNotAllocate(t *testing.T) {
	k, buf := Key{"shop-a", "create-order"}, make([]byte, 0, 64)
	if n := testing.AllocsPerRun(100, func() { buf = k.AppendRedis(buf[:0]) }); n != 0 {
		t.Errorf("%v allocations, want 0", n)
	}
}

func TestRedisShardHasNoHashTag(t *testing.T) {
	if got := (Key{"shop-a", "create-order"}).RedisShard(3); got != "rl:shop-a:create-order:3" {
		t.Errorf("got %q", got)
	}
}

func TestParseRedisRefusesForeignNames(t *testing.T) {
	for _, name := range []string{"", "rl:", "rl:shop-a:create-order:0", "rl:{a", "x:{a}:b", "rl:{a%}:b", "rl:{a%zz}:b"} {
		if k, err := ParseRedis(name); err == nil {
			t.Errorf("ParseRedis(%q) = %v, want an error", name, k)
		}
	}
}

func TestValidateName(t *testing.T) {
	for _, name := range []string{"shop-a", "a:b", "a}b{c", strings.Repeat("x", MaxNameBytes), "büro"} {
		if err := ValidateName("tenant", name); err != nil {
			t.Errorf("%q: %v", name, err)
		}
	}
	for _, name := range []string{"", "*", "@tenant", "@gold", "a\x00", "\xff", strings.Repeat("x", MaxNameBytes+1)} {
		err := ValidateName("tenant", name)
		if err == nil || !strings.HasPrefix(err.Error(), "tenant: ") {
			t.Errorf("%q: %v, want an error that names the field", name, err)
		}
	}
}

func FuzzParseRedis(f *testing.F) {
	f.Add("rl:{shop-a}:create-order")
	f.Add("rl:{a%7Db}:%00")
	f.Fuzz(func(t *testing.T, name string) {
		if k, err := ParseRedis(name); err == nil {
			if again, err := ParseRedis(k.Redis()); err != nil || again != k {
				t.Fatalf("%q -> %v -> %v, %v", name, k, again, err)
			}
		}
	})
}
