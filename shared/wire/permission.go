package wire

// Permissions are the subjects that one role needs of NATS, and all that it should be given. "*" stands for any one name,
// ">" for anything behind.
type Permissions struct {
	Publish, Subscribe []string
	// Responses: it answers each request that it receives, once, on the subject that the request names.
	Responses bool
}

// InboxPrefix is where the gateways of a region wait for replies: a prefix of their own, so that no region can be given
// leave to hear what another is answered. A connection that asks anything must use it (nats.CustomInboxPrefix).
func InboxPrefix(region string) string { return "_INBOX." + region }

// GatewayPermissions let the gateways of region speak as that region only. Asks carry no sender in their subject: one that
// is forged makes a region lend what it can spare, never more.
func GatewayPermissions(region string) Permissions {
	return Permissions{
		Publish: []string{
			SubjectUsage(region), SubjectHeartbeat(region), SubjectHot(region), SubjectAsk("*"),
			SubjectTransfer("*", region), SubjectAck("*", region), SubjectVoid("*", region), SubjectAnswer("*", region),
			SubjectConsume("*"), SubjectReturn("*"), SubjectRenew(region), SubjectGrant("*", region),
		},
		Subscribe: []string{
			SubjectChanged, SubjectAdvice(region), SubjectUsage(region), SubjectHeartbeat(region), SubjectHot(region), SubjectAsk(region),
			SubjectTransfer(region, "*"), SubjectAck(region, "*"), SubjectVoid(region, "*"), SubjectAnswer(region, "*"),
			SubjectConsume(region), SubjectReturn(region), SubjectRenew("*"), SubjectGrant(region, "*"), InboxPrefix(region) + ".>",
		},
		Responses: true,
	}
}

// RebalancerPermissions let a rebalancer advise, announce changes, vote on leases, and act in the name of regions that are dead:
// it voids their former lives and sends their last rows, and hears what they would be answered.
func RebalancerPermissions() Permissions {
	return Permissions{
		Publish:   []string{SubjectChanged, SubjectAdvice("*"), SubjectVoid("*", "*"), SubjectTransfer("*", "*"), SubjectGrant("*", SenderControl)},
		Subscribe: []string{SubjectUsage("*"), SubjectHeartbeat("*"), SubjectAnswer("*", "*"), SubjectAck("*", "*"), SubjectRenew("*")},
	}
}
