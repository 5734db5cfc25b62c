package modelcheck

// two is the plain scope that most others vary: two regions, loans and gives.
func two(name string, vary func(*Scope)) Scope {
	return variant(Scope{Name: name, Units: 4, Base: []int{3, 1}, Capacity: 1, Rate: 1, Moves: 3, MaxLoan: 2, Prune: true}, vary)
}

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
		two("moves", nil),
	}
}
