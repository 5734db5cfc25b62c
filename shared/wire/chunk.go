package wire

// Item is one element of a message's list; it knows how many bytes it takes at most.
type Item interface {
	KeyUsage | Move | Row | AckRow | AskKey | KeyName | AnswerKey
	maxBytes() int
}

// listBytes is what Chunks lets a list take, so that the header and the brackets always fit beside it.
const listBytes = MaxMessageBytes - 8<<10

// Chunks divides items, in order, into lists that each fit one message. There is always at least one, so that a report
// with nothing in it is still sent.
func Chunks[T Item](items []T) [][]T {
	var chunks [][]T
	begin, bytes := 0, 0
	for i := range items {
		n := items[i].maxBytes()
		if bytes+n > listBytes || i-begin == MaxItems {
			chunks = append(chunks, items[begin:i:i])
			begin, bytes = i, 0
		}
		bytes += n
	}
	return append(chunks, items[begin:len(items):len(items)])
}

// fixedBytes is more than the names of the fields and the numbers of any item take.
const fixedBytes = 320

// textBytes is the most a string takes in JSON, where one byte can become \u00XX.
func textBytes(s string) int {
	n := len(s)
	for i := range len(s) {
		if c := s[i]; c < 0x20 || c >= 0x7f || c == '"' || c == '\\' || c == '<' || c == '>' || c == '&' {
			n += 5
		}
	}
	return n
}

func (k KeyUsage) maxBytes() int {
	n := fixedBytes + textBytes(k.Tenant) + textBytes(k.Route) + 11*len(k.Sources)
	if r := k.Refusal; r != nil {
		n += fixedBytes + textBytes(r.Outcome) + textBytes(r.Source) + textBytes(r.Limit)
	}
	return n
}

func (m Move) maxBytes() int {
	return fixedBytes + textBytes(m.Tenant) + textBytes(m.Route) + textBytes(m.To) + textBytes(m.Reason)
}

func (r Row) maxBytes() int { return fixedBytes + textBytes(r.Tenant) + textBytes(r.Route) }

func (r AckRow) maxBytes() int { return fixedBytes + textBytes(r.Tenant) + textBytes(r.Route) }
