package sim

import (
	"math"
	"slices"
	"time"

	"partidor.dev/partidor/shared/limit"
	"partidor.dev/partidor/shared/rights/lease"
)

// Builtin are the study's scenarios S1 to S12 with the product's gates. They are the same limits, loads and faults that
// the design was chosen by.
func Builtin() []Scenario {
	return slices.Concat(steady(), surges(), failures(), swings(), []Scenario{population()})
}

// gate is the usual set: efficiency and refusals with room in percent, less than a token of over-admission.
func gate(efficiency, refused float64) *Gates {
	return &Gates{Efficiency: efficiency / 100, RefusedWithRoom: refused / 100, OverAdmission: 1, Messages: maxMessages}
}

const (
	// maxMessages per minute and key while its load is in flux.
	maxMessages = 1500
	// calmMessages under a steady load that fits, with a capacity of at least a second of the rate.
	calmMessages = 60
	// noRefusals is the bound on refusals with room, in percent, where nothing is broken.
	noRefusals = 0.05
)

var names = []string{"eu", "us", "ap", "sa", "af"}

// world makes a scenario with a limit of perSecond tokens/s and the usual network: 40 ms one way, 0.2 % loss.
func world(name, about string, duration, step time.Duration, perSecond, capacity int64, base []limit.Share, traffic ...Traffic) Scenario {
	s := Scenario{
		Name: name, About: about, Duration: duration, Step: step,
		Rule:    limit.Rule{Capacity: capacity, Refill: perSecond, PeriodSeconds: 1},
		Network: Network{OneWay: 40 * time.Millisecond, Loss: 0.002, Repeat: 0.001},
	}
	for i, b := range base {
		s.Regions = append(s.Regions, Region{Name: names[i], Base: b, Traffic: traffic[i]})
	}
	return s
}

// with returns the scenario with gates and faults.
func (s Scenario) with(g *Gates, faults ...Fault) Scenario {
	s.Gates, s.Faults = g, faults
	return s
}

// leased returns the scenario with leases, as a deployment over three failure domains runs them.
func (s Scenario) leased() Scenario {
	terms := lease.DefaultTerms()
	s.Leases = &terms
	return s
}

const (
	tick = 10 * time.Millisecond
	day  = 24 * time.Hour
)

var (
	twoBase   = []limit.Share{700_000, 300_000}
	evenBase  = []limit.Share{500_000, 500_000}
	thirdBase = []limit.Share{333_334, 333_333, 333_333}
)

func steady() []Scenario {
	tiny := []limit.Share{500_000, 300_000, 200_000}
	perMinute := world("S6b", "tiny limit of 5 a minute over three regions", 10*time.Hour, 20*time.Millisecond, 5, 5, tiny,
		Constant(4.0/60*0.5), Constant(4.0/60*0.3), Constant(4.0/60*0.2)).with(gate(99.5, 0.5))
	perMinute.Rule.PeriodSeconds = 60
	sun := make([]Traffic, 3)
	for i := range sun {
		sun[i] = Noisy{Diurnal{Mean: 300, Amplitude: 0.6, Phase: float64(i) / 3, Period: day}, 0.15, 300 * time.Second}
	}
	around := make([]Traffic, 5)
	for i := range around {
		around[i] = Noisy{Diurnal{Mean: 180, Amplitude: 0.8, Phase: float64(i) / 5, Period: 4 * time.Hour}, 0.25, time.Minute}
	}
	far := world("S12", "five regions, 200 ms apart, 1 % loss, a day of 4 h", 4*time.Hour, 20*time.Millisecond, 1000, 1000,
		[]limit.Share{200_000, 200_000, 200_000, 200_000, 200_000}, around...).with(gate(99.8, 0.3))
	far.Network = Network{OneWay: 100 * time.Millisecond, Loss: 0.01, Repeat: 0.001}
	calm := gate(99.9, noRefusals)
	calm.Messages = calmMessages
	return []Scenario{
		world("S1a", "steady 70/30 as configured, 95 % of the limit, burst of 0.2 s", 30*time.Minute, tick, 1000, 200, twoBase,
			Constant(665), Constant(285)).with(gate(99.9, noRefusals)),
		world("S1b", "steady 45/55 where 70/30 is configured", 30*time.Minute, tick, 1000, 1000, twoBase,
			Constant(427.5), Constant(522.5)).with(calm),
		world("S2", "three regions through a day", day, 50*time.Millisecond, 1000, 1000, thirdBase, sun...).with(gate(99.8, noRefusals)),
		world("S6a", "tiny limit of 1/s over three regions", 2*time.Hour, tick, 1, 1, tiny,
			Constant(0.4), Constant(0.24), Constant(0.16)).with(gate(99.5, 0.5)),
		perMinute,
		world("S11", "twice the limit, 60/30/10", 10*time.Minute, tick, 1000, 1000, thirdBase,
			Constant(1200), Constant(600), Constant(200)).with(gate(99.9, 0)),
		far,
	}
}

func surges() []Scenario {
	crowd := Ramp{{0, 80}, {300 * time.Second, 80}, {330 * time.Second, 800}, {630 * time.Second, 800}}
	for t := 10; t <= 1200; t += 10 {
		crowd = append(crowd, Point{time.Duration(630+t) * time.Second, 80 * (1 + 9*math.Exp(-float64(t)/300))})
	}
	onOff := OnOff{On: 1000, Off: 20, MeanOn: 2 * time.Second, MeanOff: 8 * time.Second,
		MaxOn: time.Minute, MaxOff: 4 * time.Minute, Alpha: 1.5}
	return []Scenario{
		world("S3", "flash crowd of ten times in one of three regions", 30*time.Minute, tick, 1000, 1000, thirdBase,
			Constant(80), crowd, Constant(80)).with(gate(99.9, noRefusals)),
		world("S3b", "ten times at once, every other half minute", 15*time.Minute, tick, 1000, 1000, thirdBase,
			Constant(80), Square{High: 800, Low: 80, Phase: 0.5, Period: time.Minute}, Constant(80)).with(gate(99.9, noRefusals)),
		world("S3c", "three times the limit in one region for two minutes", 10*time.Minute, tick, 1000, 1000, thirdBase,
			Constant(150), Steps{{0, 150}, {200 * time.Second, 3000}, {320 * time.Second, 150}}, Constant(150)).with(gate(99.9, noRefusals)),
		world("S5", "on/off with heavy tails, peaks as high as the limit", 30*time.Minute, tick, 1000, 2000, thirdBase,
			onOff, onOff, onOff).with(gate(96, 3)),
	}
}

func failures() []Scenario {
	shift := 300 * time.Second
	moved := func(before, after float64) Traffic {
		return Ramp{{0, before}, {shift, before}, {shift + 10*time.Second, after}}
	}
	rewrite := world("S9b", "the control plane dies while it rewrites, under overload", 10*time.Minute, tick, 1000, 1000, thirdBase,
		Steps{{0, 150}, {295 * time.Second, 700}}, Steps{{0, 600}, {295 * time.Second, 700}}, Steps{{0, 150}, {295 * time.Second, 700}})
	return []Scenario{
		world("S4a", "all traffic of one region moves to the other within 10 s", 15*time.Minute, tick, 1000, 1000, twoBase,
			moved(560, 0), moved(240, 800)).with(gate(99.9, noRefusals)),
		world("S4b", "a region dies, its traffic moves to the two others", 15*time.Minute, tick, 1000, 1000,
			[]limit.Share{500_000, 300_000, 200_000}, Steps{{0, 400}, {shift, 0}}, moved(240, 480), moved(160, 320)).
			with(gate(99.8, 0), Fault{Down, "eu", shift, time.Hour}).leased(),
		world("S8", "a region isolated for 10 minutes while the load shifts", 25*time.Minute, tick, 1000, 1000, thirdBase,
			Steps{{0, 300}, {400 * time.Second, 550}}, Steps{{0, 300}, {400 * time.Second, 450}}, Steps{{0, 300}, {400 * time.Second, 200}}).
			with(gate(98.5, 0), Fault{Isolated, "ap", shift, 900 * time.Second}).leased(),
		world("S9", "the control plane is dead for two minutes, the load shifts just before", 15*time.Minute, tick, 1000, 1000, thirdBase,
			Steps{{0, 150}, {295 * time.Second, 650}}, Steps{{0, 600}, {295 * time.Second, 150}}, Steps{{0, 150}, {295 * time.Second, 100}}).
			with(gate(99.9, noRefusals), Fault{Down, Control, shift, 420 * time.Second}),
		rewrite.with(gate(99.9, 0), Fault{Down, Control, 302500 * time.Millisecond, time.Hour}),
	}
}

func swings() []Scenario {
	pingPong := func(name string, period, duration time.Duration, capacity int64) Scenario {
		return world(name, "the load swings between two regions every "+(period/2).String(), duration, tick, 1000, capacity, evenBase,
			Square{High: 880, Low: 20, Period: period}, Square{High: 880, Low: 20, Phase: 0.5, Period: period})
	}
	return []Scenario{
		pingPong("S10a", 2*time.Second, 10*time.Minute, 1000).with(gate(0, 0)),
		pingPong("S10b", 20*time.Second, 20*time.Minute, 1000).with(gate(99.9, noRefusals)),
		pingPong("S10c", 2*time.Minute, 40*time.Minute, 1000).with(gate(99.9, noRefusals)),
		pingPong("S10d", 2*time.Second, 10*time.Minute, 100).with(gate(0, 0)),
	}
}
