// Package middleware puts Partidor's limits in front of a service's own handlers, without the gateway.
//
// It decides in the same buckets, by the same arithmetic and with the same answers: headers on every response, 429 with a
// true Retry-After, and a local limiter while Redis is away. What it leaves to the service is whom a request is counted
// against and which rule holds. A service that is not split over regions holds the whole limit; one that is gives its
// region's share.
package middleware
