package main

import (
	"math"
	"time"

	"partidor.dev/partidor/shared/limit"
)

// route is the one way through the demo's gateways.
const route = "create-order"

// regions in the order of the table.
var regions = []string{"eu", "us"}

// base is the configured split, which every key has until its share first moves.
var base = limit.Split{"eu": 700_000, "us": 300_000}

// tenant is one caller: its worldwide limit and its traffic.
type tenant struct {
	name string
	// what people should see in it
	note             string
	capacity, refill int64
	// offered is requests per second, all regions together.
	offered float64
	// still traffic stays half and half; other traffic swings.
	still bool
	// onError is what holds while Redis is away.
	onError limit.OnError
}

func (t tenant) key() limit.Key { return limit.Key{Tenant: t.name, Route: route} }

func (t tenant) rule() *limit.Rule {
	return &limit.Rule{Capacity: t.capacity, Refill: t.refill, PeriodSeconds: 1}
}

var tenants = []tenant{
	{name: "acme", note: "a little above its limit", capacity: 400, refill: 200, offered: 210},
	{name: "globex", note: "below its limit: nothing should be refused", capacity: 100, refill: 50, offered: 40},
	{name: "initech", note: "floods both regions", capacity: 20, refill: 10, offered: 60, still: true},
	{name: "umbrella", note: "small", capacity: 12, refill: 6, offered: 4},
}

func scaled(in []tenant, factor float64) []tenant {
	out := make([]tenant, len(in))
	for i, t := range in {
		t.capacity = max(1, int64(math.Round(float64(t.capacity)*factor)))
		t.refill = max(1, int64(math.Round(float64(t.refill)*factor)))
		t.offered *= factor
		out[i] = t
	}
	return out
}

// euPart is the part of swinging traffic that enters in eu: 70 % and 20 % by turns, each held for a while, with a slope of
// a twelfth of the swing between them.
func euPart(elapsed, swing time.Duration) float64 {
	const high, low, slope = 0.7, 0.2, 1.0 / 12
	at := math.Mod(elapsed.Seconds(), swing.Seconds()) / swing.Seconds()
	down := min(max((at-0.25)/slope, 0), 1)
	up := min(max((at-0.75)/slope, 0), 1)
	return high - (high-low)*(down-up)
}

// rate is the tenant's requests per second in a region.
func (t tenant) rate(region string, elapsed, swing time.Duration) float64 {
	part := euPart(elapsed, swing)
	if t.still {
		part = 0.5
	}
	if region != "eu" {
		part = 1 - part
	}
	return t.offered * part
}
