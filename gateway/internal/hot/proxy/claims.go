package proxy

import "strings"

// Claims tells whether a header, its name in canonical form, says who the client is, how it came, or that another request is
// meant than the one that was sent. Upstreams believe such words because a proxy in front of them says them; from clients they
// would be forgeries, and a method or path other than the one that was matched would go past that one's limit.
func Claims(name string) bool {
	switch name {
	// Addresses, as one or another proxy or network of them tells them.
	case "Forwarded", "X-Forwarded", "X-Real-Ip", "True-Client-Ip", "Client-Ip", "X-Client-Ip", "X-Cluster-Client-Ip", "X-Remote-Ip",
		"X-Remote-Addr", "X-Originating-Ip", "X-Original-Forwarded-For", "X-Proxyuser-Ip", "Proxy-Client-Ip", "Wl-Proxy-Client-Ip",
		"X-Envoy-External-Address", "X-Azure-Clientip", "X-Azure-Socketip", "X-Appengine-User-Ip", "X-Vercel-Forwarded-For",
		"Cf-Connecting-Ip", "Cf-Connecting-Ipv6", "Cf-Pseudo-Ipv4", "Fastly-Client-Ip", "Fly-Client-Ip",
		// Certificates of the connection, and that there was TLS.
		"Client-Cert", "Client-Cert-Chain", "X-Client-Cert", "Front-End-Https", "X-Url-Scheme", "X-Scheme",
		// Another method, path or host.
		"X-Http-Method", "X-Http-Method-Override", "X-Method-Override",
		"X-Original-Method", "X-Original-Url", "X-Original-Uri", "X-Original-Host", "X-Rewrite-Url", "X-Host", "X-Http-Host-Override",
		// CGI hands it to its program as HTTP_PROXY, where to send all further requests.
		"Proxy":
		return true
	}
	return strings.HasPrefix(name, "X-Forwarded-") || strings.HasPrefix(name, "X-Ssl-Client-")
}
