package sim

import (
	"fmt"
	"math"
	"math/rand/v2"
	"time"
)

// Sizes of scenario S7: tenants whose load follows Zipf's law, of which the largest and a random sample are played.
const (
	tenants     = 100_000
	topTenants  = 100
	someTenants = 500
	zipf        = 1.1
	// tenantsLoad is the load of all tenants together, in requests per second.
	tenantsLoad = 200_000
)

// population is S7: each tenant has a limit from a ladder, some three times its mean load, its own split of traffic over
// three regions, and a third of the tenants come and go.
func population() Scenario {
	s := world("S7", "100,000 tenants by Zipf's law: the largest and a sample", 5*time.Minute, 20*time.Millisecond, 1, 1,
		thirdBase, Constant(0), Constant(0), Constant(0)).with(gate(99.9, noRefusals))
	s.Keys = sample
	return s
}

func sample(seed uint64) []Scenario {
	r := rand.New(rand.NewPCG(seed, 42))
	harmonic := 0.0
	for i := 1; i <= tenants; i++ {
		harmonic += math.Pow(float64(i), -zipf)
	}
	keys := make([]Scenario, 0, topTenants+someTenants)
	for i := range topTenants + someTenants {
		rank := i + 1
		if i >= topTenants {
			rank = 1 + r.IntN(tenants)
		}
		load := tenantsLoad / harmonic * math.Pow(float64(rank), -zipf)
		keys = append(keys, tenant(r, rank, load))
	}
	return keys
}

// ladder is the limits on sale: tokens per minute.
var ladder = []int64{5, 30, 60, 300, 600, 3_000, 6_000, 30_000, 60_000, 300_000, 1_200_000, 6_000_000}

func tenant(r *rand.Rand, rank int, load float64) Scenario {
	used := 0.35 * math.Exp(0.9*r.NormFloat64())
	perMinute := ladder[len(ladder)-1]
	for _, l := range ladder {
		if float64(l)/60 >= load/used {
			perMinute = l
			break
		}
	}
	weights, sum := make([]float64, 3), 0.0
	for i := range weights {
		x := r.NormFloat64()
		weights[i] = x * x
		sum += weights[i]
	}
	bursty := r.Float64() < 0.3
	traffic := make([]Traffic, 3)
	for i := range traffic {
		mean := load * weights[i] / sum
		traffic[i] = Constant(mean)
		if bursty {
			traffic[i] = OnOff{On: 2.4 * mean, Off: 0.3 * mean, MeanOn: 30 * time.Second, MeanOff: time.Minute,
				MaxOn: time.Minute, MaxOff: 4 * time.Minute, Alpha: 1.5}
		}
	}
	capacity := max(1, int64(math.Ceil(float64(perMinute)/60)))
	s := world(fmt.Sprintf("S7-%d", rank), "", 5*time.Minute, 20*time.Millisecond, perMinute, capacity, thirdBase, traffic...)
	s.Rule.PeriodSeconds = 60
	return s
}
