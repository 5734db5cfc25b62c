// Package console is the page that the rebalancer serves to people: regions and health, keys by pressure, one key with its
// shares over time and the reason of every move, parameters, and the audit log. It is plain HTML, CSS and JavaScript over
// the admin API; the assets are embedded and the page asks nobody else for anything. The plots are drawn by uPlot (MIT), whose
// licence stands beside it in assets/vendor.
package console
