package headers

import "strings"

// withoutItem drops from a list of structured fields the items whose name is name, quotes included.
func withoutItem(line, name string) string {
	if !strings.Contains(line, name) {
		return line
	}
	var kept []string
	for rest := line; rest != ""; {
		var item string
		item, rest = cutItem(rest)
		bare := strings.TrimSpace(item)
		if bare == "" || bare == name || strings.HasPrefix(bare, name) && strings.HasPrefix(strings.TrimLeft(bare[len(name):], " "), ";") {
			continue
		}
		kept = append(kept, bare)
	}
	return strings.Join(kept, ", ")
}

// cutItem splits a list behind its first comma outside quotes.
func cutItem(list string) (item, rest string) {
	quoted := false
	for i := 0; i < len(list); i++ {
		switch list[i] {
		case '\\':
			if quoted {
				i++
			}
		case '"':
			quoted = !quoted
		case ',':
			if !quoted {
				return list[:i], list[i+1:]
			}
		}
	}
	return list, ""
}
