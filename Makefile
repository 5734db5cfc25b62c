# Every target works from a fresh clone. `make help` lists them.

SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help

GO       ?= go
CACHE    := .cache
VERSION  ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo development)
LDFLAGS  := -s -w -X main.version=$(VERSION)
MODULES  := . shared gateway rebalancer deploy

# The linter is built by this toolchain, so that it can read this code, and kept in .cache.
GOLANGCI_VERSION := v2.15.0
GOLANGCI         := $(CACHE)/golangci-lint-$(GOLANGCI_VERSION)

FUZZTIME   ?= 20s
DEMO_FLAGS ?=
BENCH_FLAGS ?=
SOAK_FLAGS ?=

.PHONY: help
help: ## list the targets
	@grep -hE '^[a-z0-9-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-10s %s\n", $$1, $$2}'

.PHONY: deps
deps: ## install the servers that tests start: Redis, PostgreSQL and Prometheus
	@.ci/deps

.PHONY: build
build: ## build the programs into bin/
	CGO_ENABLED=0 $(GO) build -trimpath -ldflags '$(LDFLAGS)' -o bin/ ./gateway/cmd/... ./rebalancer/cmd/...

.PHONY: demo
demo: ## two regions share limits in this terminal; DEMO_FLAGS="-for 30s -json" for a short run with a summary
	@$(GO) run ./deploy/demo $(DEMO_FLAGS)

# The end-to-end tests come last and alone: their processes need the processors, and their load is timed.
.PHONY: test
test: deps ## all tests, with the race detector, in random order
	$(GO) test -race -shuffle=on -timeout 15m $$($(GO) list work | grep -v /deploy/e2e)
	$(GO) test -race -count=1 -timeout 15m ./deploy/e2e/...

.PHONY: e2e
e2e: ## real processes: 2 regions side by side, and 3 with 80 ms between them
	$(GO) test -count=1 -v -timeout 15m ./deploy/e2e/...

# chaos prints its schedule; CHAOS_FLAGS="-chaos-seed 7 -chaos-for 10m" for another one, and for longer.
CHAOS_FLAGS ?=
.PHONY: chaos
chaos: ## three regions under traffic while links, processes, Redis, NATS and PostgreSQL fail; every limit must hold
	$(GO) test -tags chaos -count=1 -v -timeout 3h -run '^TestChaos$$' ./deploy/e2e -args $(CHAOS_FLAGS)

# The console's test is apart from `check`: a browser takes minutes to install.
.PHONY: console-test
console-test: ## the console in a real Chromium: an operator's steps, seen in the ledger; SHOTS=DIR keeps screenshots
	@.ci/deps browser
	npm ci --prefix rebalancer/internal/console/browser --no-audit --no-fund
	$(GO) test -tags browser -count=1 -timeout 10m ./rebalancer/app -run '^TestConsoleInChromium$$'

# bench writes .cache/bench.json and .cache/bench.md beside what it prints; BENCH_FLAGS="-sections limiter" runs a part of it.
.PHONY: bench
bench: | $(CACHE) ## limiter and gateway beside their peers, and every target of speed; about ten minutes
	$(GO) run ./deploy/bench -out $(CACHE)/bench.json -md $(CACHE)/bench.md $(BENCH_FLAGS)

.PHONY: capacity
capacity: ## the figures of deploy/docs/capacity.md, from the last `make bench`
	$(GO) run ./deploy/bench -from $(CACHE)/bench.json -page deploy/docs/capacity.md

# The gateway's request path and the limiter under load, as their benchmarks run them; read them with `go tool pprof -http : FILE`.
.PHONY: profile
profile: | $(CACHE) ## profiles of processor and heap of the bench, into .cache/profile
	$(GO) run ./deploy/bench -sections limiter,pace -profile $(CACHE)/profile/bench $(BENCH_FLAGS) > $(CACHE)/profile.log || { cat $(CACHE)/profile.log; exit 1; }
	@for package in gateway/internal/hot gateway/internal/hot/admit; do \
	  name=$$(basename $$package); \
	  $(GO) test -run '^$$' -bench . -benchtime 1s -o $(CACHE)/profile/$$name.test -cpuprofile $(CACHE)/profile/$$name-cpu.pprof \
	    -memprofile $(CACHE)/profile/$$name-heap.pprof ./$$package >> $(CACHE)/profile.log || { cat $(CACHE)/profile.log; exit 1; }; \
	done
	@$(GO) tool pprof -top -nodecount 15 $(CACHE)/profile/bench/cpu.pprof
	@ls $(CACHE)/profile $(CACHE)/profile/bench

# soak writes .cache/soak.svg and .cache/soak.json; SOAK_FLAGS="-for 2m -soak 20s" for a shorter one.
.PHONY: soak
soak: | $(CACHE) ## half an hour of load over two regions with a fault every minute; nothing may grow, no limit be exceeded
	$(GO) run ./deploy/demo -json -for 30m -soak 1m -plot $(CACHE)/soak.svg $(SOAK_FLAGS) > $(CACHE)/soak.json

.PHONY: simulate
simulate: ## the shipped policy in virtual time, against one ideal bucket and a static split
	$(GO) run ./rebalancer/cmd/rebalancer simulate
	$(GO) run ./rebalancer/cmd/rebalancer simulate --sweep --seeds 1

.PHONY: scale
scale: ## partidorctl with 300,000 rules: what every verb that sees them all takes
	$(GO) test -count=1 -v -timeout 60m ./rebalancer/cmd/partidorctl -run '^TestScale$$' -tenants 100000

.PHONY: flood
flood: ## a bucket on a real Redis flooded for a minute, which the tests do for three seconds
	$(GO) test -count=1 -v ./shared/bucket -run '^TestFloodStaysWithinTheLimit$$' -flood 1m

.PHONY: rights-check
rights-check: ## every scope and every mutant of the rights protocol; takes many minutes
	$(GO) test -count=1 -v -timeout 90m ./shared/rights/modelcheck -long

# What is merely of interest is hardly minimized: the default of a minute each would be all that a short run does.
.PHONY: fuzz
fuzz: ## every fuzz target for FUZZTIME
	@for dir in $$(grep -rlE '^func Fuzz' --include='*_test.go' . | xargs -n1 dirname | sort -u); do \
	  for target in $$(grep -rhoE '^func Fuzz[A-Za-z0-9_]+' $$dir/*_test.go | awk '{print $$2}'); do \
	    echo "== $$dir $$target"; \
	    $(GO) test -run '^$$' -fuzz "^$$target$$" -fuzztime $(FUZZTIME) -fuzzminimizetime 10x $$dir; \
	  done; \
	done

# check is what continuous integration runs. The linter is built while the rest is checked; the tests come last, so that
# their lines end the output.
.PHONY: check
check: ## everything continuous integration checks
	@$(MAKE) --no-print-directory $(GOLANGCI) > $(CACHE)/linter.log 2>&1 & linter=$$!; \
	$(MAKE) --no-print-directory fmt-check tidy-check terraform-check vet smoke && \
	{ wait $$linter || { cat $(CACHE)/linter.log; exit 1; }; } && \
	$(MAKE) --no-print-directory lint && \
	$(MAKE) --no-print-directory test

check: | $(CACHE)

.PHONY: fmt-check
fmt-check:
	@unformatted=$$(gofmt -l $(MODULES:.=lua) *.go); [ -z "$$unformatted" ] || { echo "gofmt needed:"; echo "$$unformatted"; exit 1; }

.PHONY: tidy-check
tidy-check:
	@for module in $(MODULES); do GOWORK=off $(GO) -C $$module mod tidy -diff || { echo "run: make tidy"; exit 1; }; done

.PHONY: tidy
tidy: ## bring go.mod and go.sum of every module in order
	for module in $(MODULES); do GOWORK=off $(GO) -C $$module mod tidy; done

.PHONY: vet
vet: ## build and vet every package
	$(GO) build -o /dev/null work
	$(GO) vet work

# smoke runs every benchmark once: they must work, their numbers mean nothing here.
.PHONY: smoke
smoke:
	$(GO) test -run '^$$' -bench . -benchtime 1x -timeout 10m work > $(CACHE)/smoke.log || { cat $(CACHE)/smoke.log; exit 1; }

smoke: | $(CACHE)

.PHONY: lint
lint: $(GOLANGCI) ## the linter, over every module
	$(GOLANGCI) run $$($(GO) list -f '{{.Dir}}/...' -m)

$(GOLANGCI): | $(CACHE)
	GOWORK=off GOBIN=$(abspath $(CACHE)) $(GO) install github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(GOLANGCI_VERSION)
	mv $(CACHE)/golangci-lint $@

# The chart is rendered and Terraform planned apart from `check`: Helm's packages take minutes to build, terraform is no package of
# Debian's. `check` compares the chart with what was rendered last (deploy/helm/chart_test.go) and says what it left out.
.PHONY: chart-test
chart-test: ## the chart: golden files, strict types, what it must refuse; UPDATE=1 rewrites the golden files
	@.ci/chart-test

# A collector of the configuration's own components, built from its modules: five minutes of one processor the first time.
.PHONY: otel-check
otel-check: ## deploy/otel/collector.yaml in a real collector: valid, and it keeps the traces that matter
	GOWORK=off $(GO) -C deploy/otel/check test -count=1 ./...

.PHONY: image-test
image-test: ## the images' programs, built twice from what the Dockerfile copies: the same bytes; takes minutes
	@.ci/image-test

.PHONY: terraform-test
terraform-test: ## terraform: format, validate, test every module and example
	@.ci/terraform-test

.PHONY: terraform-check
terraform-check:
	@.ci/terraform-check

$(CACHE):
	@mkdir -p $@

.PHONY: clean
clean: ## remove what was built
	rm -rf bin $(CACHE)
