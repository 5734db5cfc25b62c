package plan

import "partidor.dev/partidor/shared/limit"

// transport appends the moves that lead from current to target: the largest excess gives to the largest deficit until
// one side is settled. That needs at most one move fewer than there are regions.
func (s *scratch) transport(key limit.Key, reason Reason, moves []Move) []Move {
	for i := range s.target {
		change := s.target[i] - s.current[i]
		s.deficit[i], s.excess[i] = max(0, change), max(0, -change)
	}
	for {
		from, to := largest(s.excess), largest(s.deficit)
		amount := min(s.excess[from], s.deficit[to])
		if amount <= 0 {
			return moves
		}
		s.excess[from] -= amount
		s.deficit[to] -= amount
		moves = append(moves, Move{
			Key: key, From: from, To: to, Amount: amount,
			Held: s.current[from], Target: s.target[from], Floor: s.floor[from], Reason: reason,
		})
	}
}

func largest(v []limit.Share) int {
	best := 0
	for i := range v {
		if v[i] > v[best] {
			best = i
		}
	}
	return best
}
