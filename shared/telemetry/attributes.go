package telemetry

import "go.opentelemetry.io/otel/attribute"

// The attributes that spans and metrics of ours carry, besides those of OpenTelemetry's semantic conventions. In Prometheus
// dots become underscores. Of metrics each has a few fixed values or one per configured thing; AttributeTenant is carried by
// those only that the configuration names.
const (
	// AttributeRegion tells where a process runs, or of which region it speaks. Every series scraped from a gateway has it.
	AttributeRegion = attribute.Key("partidor.region")
	// AttributePeer is the other region of a transfer.
	AttributePeer = attribute.Key("partidor.peer")

	AttributeTenant = attribute.Key("partidor.tenant")
	AttributeRoute  = attribute.Key("partidor.route")

	// Of a decision. Outcome is also what came of a request to another region's home.
	AttributeOutcome  = attribute.Key("partidor.outcome")
	AttributeSource   = attribute.Key("partidor.source")
	AttributeDegraded = attribute.Key("partidor.degraded")
	AttributeRevision = attribute.Key("partidor.revision")

	// AttributeShare is a part of 1,000,000. AttributeAmount is what a step moved: share, or whole tokens.
	AttributeShare   = attribute.Key("partidor.share")
	AttributeAmount  = attribute.Key("partidor.amount")
	AttributeVerdict = attribute.Key("partidor.verdict")

	// AttributeOperation is what was done to rights, AttributeResult ok or what else came of it, AttributeReason why something
	// was dropped, AttributeCause why a cycle ran, AttributeKind of what something is one, AttributeState of a breaker.
	AttributeOperation = attribute.Key("partidor.operation")
	AttributeResult    = attribute.Key("partidor.result")
	AttributeReason    = attribute.Key("partidor.reason")
	AttributeCause     = attribute.Key("partidor.cause")
	AttributeKind      = attribute.Key("partidor.kind")
	AttributeState     = attribute.Key("partidor.state")

	// AttributeSignal is traces, metrics or logs.
	AttributeSignal = attribute.Key("partidor.signal")
)
