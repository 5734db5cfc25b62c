package modelcheck

// two is the plain scope that most two-region ones vary: loans and gives, floors of 0.
func two(name string, vary func(*Scope)) Scope {
	return variant(Scope{Name: name, Units: 4, Base: []int{3, 1}, Capacity: 1, Rate: 1, Moves: 3, MaxLoan: 2, Prune: true, Trust: true}, vary)
}

// three is the plain scope of three regions.
func three(name string, vary func(*Scope)) Scope {
	return variant(Scope{Name: name, Units: 4, Base: []int{2, 1, 1}, Capacity: 1, Rate: 1, Moves: 2, MaxLoan: 1, Prune: true, Trust: true}, vary)
}

func variant(c Scope, vary func(*Scope)) Scope {
	if vary != nil {
		vary(&c)
	}
	return c
}

// Short are the scopes that every test run searches; all must hold.
func Short() []Scope {
	return []Scope{
		two("moves", func(c *Scope) { c.Units, c.Base, c.Capacity, c.Moves = 2, []int{1, 1}, 2, 2 }),
		two("data lost", func(c *Scope) {
			c.Units, c.Base, c.MaxLoan, c.Moves = 2, []int{1, 1}, 1, 2
			c.Losses, c.Failing = 1, []int{0}
		}),
		two("data lost, floor", func(c *Scope) {
			c.Moves, c.MaxLoan, c.Floor, c.Losses, c.Failing = 1, 1, []int{1, 0}, 1, []int{0}
		}),
		two("both lost", func(c *Scope) {
			c.Units, c.Base, c.MaxLoan, c.Moves = 2, []int{1, 1}, 0, 2
			c.Losses, c.Failing, c.Decide, c.Shares = 2, []int{0, 1}, true, true
		}),
		two("fenced, one leader", func(c *Scope) {
			c.Units, c.Base, c.MaxLoan, c.Moves = 2, []int{1, 1}, 1, 1
			c.Fences, c.Leaders, c.Failing = 1, 1, []int{0}
		}),
		two("fenced, resumed, leader", func(c *Scope) {
			c.Units, c.Base, c.MaxLoan, c.Moves = 2, []int{1, 1}, 0, 0
			c.Fences, c.Leaders, c.Resumes, c.Failing = 2, 1, 1, []int{0}
		}),
		two("rule change", func(c *Scope) {
			c.Units, c.Base, c.Capacity, c.MaxLoan, c.Moves = 2, []int{1, 1}, 2, 1, 2
			c.NewCapacity, c.NewRate = 1, 1
		}),
		three("three regions", func(c *Scope) { c.Moves = 1 }),
	}
}

// Long are the scopes that make rights-check searches; all must hold.
func Long() []Scope {
	return []Scope{
		two("moves, five", func(c *Scope) { c.Units, c.Base, c.Capacity, c.Moves, c.MaxStates = 2, []int{1, 1}, 2, 5, 1_500_000 }),
		two("moves, not pruned", func(c *Scope) { c.Units, c.Base, c.Capacity, c.Prune, c.Trust = 2, []int{1, 1}, 2, false, false }),
		two("moves, four units", func(c *Scope) { c.Moves = 4 }),
		two("data lost, wide", func(c *Scope) { c.MaxLoan, c.Moves, c.Losses, c.Failing = 1, 2, 1, []int{0} }),
		two("data lost twice, floor, old copy", func(c *Scope) {
			c.Units, c.Base, c.Capacity = 2, []int{1, 1}, 2
			c.Moves, c.MaxLoan, c.Floor, c.Losses, c.Failing, c.Copies = 1, 1, []int{1, 0}, 2, []int{0}, true
		}),
		two("both lost, decided", func(c *Scope) {
			c.Units, c.Base, c.MaxLoan, c.Moves = 2, []int{1, 1}, 0, 2
			c.Losses, c.Failing, c.Decide = 2, []int{0, 1}, true
		}),
		two("fenced, two leaders", func(c *Scope) {
			c.Units, c.Base, c.MaxLoan, c.Moves = 2, []int{1, 1}, 1, 1
			c.Fences, c.Leaders, c.Failing = 1, 2, []int{0}
		}),
		two("fenced, resumed, leader, a move", func(c *Scope) {
			c.Units, c.Base, c.MaxLoan, c.Moves = 2, []int{1, 1}, 0, 1
			c.Fences, c.Leaders, c.Resumes, c.Failing = 2, 1, 1, []int{0}
		}),
		two("fenced, resumed, two leaders", func(c *Scope) {
			c.Units, c.Base, c.MaxLoan, c.Moves = 2, []int{1, 1}, 1, 1
			c.Fences, c.Leaders, c.Resumes, c.Failing, c.MaxStates = 2, 2, 2, []int{0}, 1_500_000
		}),
		two("fenced and lost", func(c *Scope) {
			c.Units, c.Base, c.MaxLoan, c.Moves = 2, []int{1, 1}, 1, 1
			c.Fences, c.Losses, c.Leaders, c.Failing = 1, 1, 1, []int{0}
		}),
		two("rule raised, rate cut", func(c *Scope) {
			c.Units, c.Base, c.Capacity, c.Rate, c.MaxLoan, c.Moves = 2, []int{1, 1}, 2, 2, 1, 2
			c.NewCapacity, c.NewRate = 3, 1
		}),
		two("rule change and data lost", func(c *Scope) {
			c.Units, c.Base, c.Capacity, c.MaxLoan, c.Moves = 2, []int{1, 1}, 2, 1, 1
			c.NewCapacity, c.NewRate, c.Losses, c.Failing = 1, 1, 1, []int{0}
		}),
		three("three regions, two moves", nil),
		three("three regions, data lost", func(c *Scope) { c.Moves, c.Losses, c.Failing = 1, 1, []int{0} }),
		three("three regions, two lost, decided", func(c *Scope) {
			c.Moves, c.MaxLoan, c.Losses, c.Failing, c.Decide, c.MaxStates = 2, 0, 2, []int{0, 1}, true, 1_500_000
		}),
		three("three regions, shares, two lost, decided", func(c *Scope) {
			c.Moves, c.MaxLoan, c.Floor, c.Losses, c.Failing, c.Decide, c.Shares = 2, 0, []int{1, 1, 0}, 2, []int{0, 1}, true, true
			c.MaxStates = 3_000_000
		}),
		three("three regions, shares, all lost, decided", func(c *Scope) {
			c.Moves, c.MaxLoan, c.Losses, c.Failing, c.Decide, c.Shares = 1, 0, 3, []int{0, 1, 2}, true, true
			c.MaxStates = 3_000_000
		}),
		three("three regions, fenced, resumed, leader", func(c *Scope) {
			c.Moves, c.MaxLoan, c.Fences, c.Leaders, c.Resumes, c.Failing, c.MaxStates = 1, 0, 2, 1, 1, []int{0}, 1_500_000
		}),
		three("three regions, fenced, leader", func(c *Scope) {
			c.Moves, c.MaxLoan, c.Fences, c.Leaders, c.Failing, c.MaxStates = 1, 1, 1, 1, []int{0}, 1_500_000
		}),
	}
}

// Probes are small scopes, not pruned, in which the mutants must be caught. Unbroken, all of them hold.
func Probes() []Scope {
	probe := func(name string, vary func(*Scope)) Scope {
		return variant(Scope{Name: name, Units: 2, Base: []int{1, 1}, Capacity: 1, Rate: 1, Moves: 2, MaxLoan: 1, Prune: true, MaxStates: 600_000}, vary)
	}
	return []Scope{
		probe("probe moves", func(c *Scope) { c.MaxLoan, c.Capacity = 2, 2 }),
		probe("probe shares", func(c *Scope) { c.MaxLoan, c.Moves = 0, 3 }),
		probe("probe rows kept", func(c *Scope) { c.Units, c.Base, c.MaxLoan, c.Prune = 4, []int{3, 1}, 0, false }),
		probe("probe lost", func(c *Scope) { c.Losses, c.Failing = 1, []int{0} }),
		probe("probe lost, floor", func(c *Scope) {
			c.Units, c.Base, c.Floor, c.Capacity = 4, []int{3, 1}, []int{1, 0}, 1
			c.MaxLoan, c.Losses, c.Failing = 2, 1, []int{0}
		}),
		probe("probe copy", func(c *Scope) {
			c.Units, c.Base, c.Floor, c.Capacity, c.Moves = 4, []int{3, 1}, []int{1, 0}, 1, 0
			c.Losses, c.Failing, c.Copies = 1, []int{0}, true
		}),
		probe("probe both lost", func(c *Scope) {
			c.MaxLoan, c.Capacity, c.Losses, c.Failing, c.Decide = 0, 1, 2, []int{0, 1}, true
		}),
		probe("probe both lost, floor", func(c *Scope) {
			c.Units, c.Base, c.Floor, c.Moves = 4, []int{2, 1, 1}, []int{1, 1, 0}, 2
			c.MaxLoan, c.Losses, c.Failing, c.Decide, c.Shares = 0, 2, []int{0, 1}, true, true
		}),
		probe("probe fence", func(c *Scope) { c.Capacity, c.Fences, c.Leaders, c.Failing = 1, 1, 1, []int{0} }),
		probe("probe fence, floor", func(c *Scope) {
			c.Units, c.Base, c.Floor, c.Moves = 4, []int{3, 1}, []int{1, 0}, 0
			c.Fences, c.Leaders, c.Failing = 1, 1, []int{0}
		}),
		probe("probe fence, two leaders", func(c *Scope) {
			c.Capacity, c.Moves, c.Fences, c.Leaders, c.Failing = 1, 1, 1, 2, []int{0}
		}),
		probe("probe fence twice", func(c *Scope) {
			c.Capacity, c.Moves, c.Fences, c.Leaders, c.Failing = 1, 1, 2, 1, []int{0}
		}),
		probe("probe resume", func(c *Scope) {
			c.Moves, c.MaxLoan, c.Fences, c.Leaders, c.Resumes, c.Failing = 0, 0, 2, 1, 1, []int{0}
		}),
		probe("probe rule", func(c *Scope) { c.Capacity, c.NewCapacity, c.NewRate = 2, 1, 1 }),
		probe("probe rule raised", func(c *Scope) { c.Moves, c.NewCapacity, c.NewRate = 0, 4, 2 }),
		probe("probe base", func(c *Scope) {
			c.MaxLoan, c.Moves, c.NewCapacity, c.NewRate, c.NewBase = 0, 1, 2, 1, []int{2, 0}
			c.Losses, c.Failing = 1, []int{0}
		}),
		three("probe three", func(c *Scope) { c.Trust, c.MaxStates = false, 2_000_000 }),
		three("probe three lost", func(c *Scope) { c.Moves, c.Losses, c.Failing, c.MaxLoan, c.MaxStates = 2, 1, []int{0}, 0, 600_000 }),
		three("probe three fenced", func(c *Scope) {
			c.Moves, c.MaxLoan, c.Fences, c.Leaders, c.Failing, c.MaxStates = 1, 1, 1, 1, []int{0}, 600_000
		}),
	}
}

// Find gives a scope by its name.
func Find(name string) (Scope, bool) {
	for _, list := range [][]Scope{Short(), Long(), Probes()} {
		for _, c := range list {
			if c.Name == name {
				return c, true
			}
		}
	}
	return Scope{}, false
}
