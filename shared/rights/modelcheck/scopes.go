package modelcheck

// two is the plain scope that most two-region ones vary: loans and gives, floors of 0.
func two(name string, vary func(*Scope)) Scope {
	return variant(Scope{Name: name, Units: 4, Base: []int{3, 1}, Capacity: 1, Rate: 1, Moves: 3, MaxLoan: 2, Prune: true}, vary)
}

// three is the plain scope of three regions.
func three(name string, vary func(*Scope)) Scope {
	return variant(Scope{Name: name, Units: 4, Base: []int{2, 1, 1}, Capacity: 1, Rate: 1, Moves: 2, MaxLoan: 1, Prune: true}, vary)
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
		two("moves", func(c *Scope) { c.Units, c.Base, c.Capacity, c.Moves = 2, []int{1, 1}, 2, 3 }),
		two("data lost", func(c *Scope) {
			c.Units, c.Base, c.Capacity, c.MaxLoan, c.Moves = 2, []int{1, 1}, 2, 1, 2
			c.Losses, c.Failing = 1, []int{0}
		}),
		two("data lost, floor", func(c *Scope) {
			c.Moves, c.MaxLoan, c.Floor, c.Losses, c.Failing = 1, 1, []int{1, 0}, 1, []int{0}
		}),
		two("fenced, one leader", func(c *Scope) {
			c.Units, c.Base, c.MaxLoan, c.Moves = 2, []int{1, 1}, 1, 1
			c.Fences, c.Leaders, c.Failing = 1, 1, []int{0}
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
		two("moves, five", func(c *Scope) { c.Units, c.Base, c.Capacity, c.Moves = 2, []int{1, 1}, 2, 5 }),
		two("moves, not pruned", func(c *Scope) { c.Units, c.Base, c.Capacity, c.Prune = 2, []int{1, 1}, 2, false }),
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
			c.Moves, c.MaxLoan, c.Losses, c.Failing, c.Decide, c.MaxStates = 2, 0, 2, []int{0, 1}, true, 3_000_000
		}),
		three("three regions, fenced, leader", func(c *Scope) {
			c.Moves, c.MaxLoan, c.Fences, c.Leaders, c.Failing, c.MaxStates = 1, 1, 1, 1, []int{0}, 3_000_000
		}),
	}
}
