package wire

// Subject names. A region name never holds a dot, a space or a wildcard: limit.ValidateName and the configuration see to
// it before any subject is built.
const (
	prefix = "partidor.v1."
	// SubjectChanged carries Changed, from the rebalancer to every gateway.
	SubjectChanged = prefix + "changed"
)

// SubjectUsage carries Usage from the instances of region to the rebalancer.
func SubjectUsage(region string) string { return prefix + "usage." + region }

// SubjectHeartbeat carries Heartbeat from the instances of region to each other and to the rebalancer.
func SubjectHeartbeat(region string) string { return prefix + "heartbeat." + region }

// SubjectAdvice carries Advice from the rebalancer to region.
func SubjectAdvice(region string) string { return prefix + "advice." + region }

// SubjectAsk carries asks of other regions to region.
func SubjectAsk(region string) string { return prefix + "ask." + region }

// SubjectTransfer carries Transfer to a region from another. to or from may be "*" to subscribe.
func SubjectTransfer(to, from string) string { return prefix + "transfer." + to + "." + from }

// SubjectAck carries Ack to a region from another. to or from may be "*" to subscribe.
func SubjectAck(to, from string) string { return prefix + "ack." + to + "." + from }

// SubjectConsume carries requests to take from a tiny limit at its home region.
func SubjectConsume(region string) string { return prefix + "consume." + region }

// SubjectReturn carries Return to the instances of a home region.
func SubjectReturn(region string) string { return prefix + "return." + region }
