package hot

// endDoubtful ends the connection behind a request whose end another server on the way may have seen elsewhere, so that what
// follows is never taken for a request of somebody else's: net/http drops what it decides against, and does not tell.
//
//   - HTTP/1.0 knows no chunks, but a proxy may go by a Transfer-Encoding there (RFC 9112 §6.1);
//   - a proxy that carries many clients' requests on one connection may go by a Content-Length beside the chunks.
//
// Such a request switches to no other protocol.
func (x *exchange) endDoubtful() {
	r := x.in
	if r.ProtoMajor != 1 || r.ProtoMinor >= 1 && (len(r.TransferEncoding) == 0 || !x.generation.addresses.ByTrusted(r)) {
		return
	}
	dropUpgrade(r.Header, nil)
	x.recorder.Header()["Connection"] = []string{"close"}
}
