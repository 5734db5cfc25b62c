package main

import "math"

// The scaling model: what a decision costs, measured in this run, gives how many gateways and Redis nodes carry a load.
//
//	gateways = load × CPU per request ÷ (cores × use)
//	Redis    = load × Redis CPU per decision ÷ use            (a Redis node decides on one core)
const (
	gatewayCores = 4   // of one gateway instance
	mostUse      = 0.6 // of a core, so that two fifths are headroom for peaks, deployments and a lost instance
)

// planned loads, requests per second and region.
var planned = []float64{50_000, 1_000_000}

// need is a row of the model.
type need struct {
	what            string
	gateway, redis  float64 // CPU µs per request, measured
	gateways, nodes int     // for a load
}

// needs reckons with the costs as they are printed, so that whoever follows the arithmetic comes to the same.
func needs(what string, gateway, redis, load float64) need {
	gateway, redis = math.Round(gateway*10)/10, math.Round(redis*100)/100
	return need{
		what: what, gateway: gateway, redis: redis,
		gateways: int(math.Ceil(load * gateway / 1e6 / (gatewayCores * mostUse))),
		nodes:    max(1, int(math.Ceil(load*redis/1e6/mostUse))),
	}
}

// ways are what the model compares, with their costs as this run measured them; none where it did not.
func (r *report) ways(load float64) []need {
	limited, ahead := findFront(r.Proxies, limitedFront), findFront(r.Proxies, aheadFront)
	busy := r.find(ours, busiest)
	if limited == nil || ahead == nil || busy == nil {
		return nil
	}
	return []need{
		needs("every decision asks Redis", limited.CPU, busy.RedisCPU, load),
		needs("hot keys, tokens taken ahead", ahead.CPU, ahead.RedisCPU, load),
	}
}

// busiest is the load whose cost the model reckons with.
var busiest = load{Keys: 10_000, Callers: 128}

// capacity writes the model, where the run measured what it is made of.
func (r *report) capacity(p *printer) {
	if r.ways(0) == nil {
		return
	}
	p.line("\n## What carries a load\n")
	p.line("Gateways have %d cores, of which %.0f %% may be used; a Redis node decides on one. CPU per request is that of the proxies' section, callers", gatewayCores, mostUse*100)
	p.line("and upstream included, so it is more than the gateway's own; Redis's is that of the busiest batched load above.")
	p.line("gateways = load × gateway µs ÷ 1e6 ÷ (%d × %.1f); Redis nodes = load × Redis µs ÷ 1e6 ÷ %.1f; both rounded up.\n", gatewayCores, mostUse, mostUse)
	r.capacityTable(p)
}

func (r *report) capacityTable(p *printer) {
	p.line("| requests/s per region | way | gateway µs | Redis µs | gateways | Redis nodes |")
	p.line("| ---: | --- | ---: | ---: | ---: | ---: |")
	for _, load := range planned {
		for _, n := range r.ways(load) {
			p.line("| %.0f | %s | %.1f | %.2f | %d | %d |", load, n.what, n.gateway, n.redis, n.gateways, n.nodes)
		}
	}
}
