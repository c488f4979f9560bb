# `make` or `make help` lists the targets. `make run` and `make test` install what they need.

SHELL := /bin/bash
.DEFAULT_GOAL := help
.NOTPARALLEL:

# Only the version may differ between two builds of one commit.
VERSION  ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo unknown)
BUILD    := CGO_ENABLED=0 go build -trimpath -buildvcs=false -ldflags '-s -w -X main.version=$(VERSION)'
LINT     := go tool -modfile=tools/go.mod golangci-lint
FUZZTIME ?= 10m
# Which tests to run: make test TESTS='-run Draw ./internal/loan'
TESTS    ?= ./...
# Which faults to test: make chaos CHAOS=NothingIsLost
CHAOS    ?= ^Test(NothingIsLost|SeveralProcesses|Fault)

.PHONY: help
help: ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: run
run: postgres build ## Start Drawbridge with demo data; prints the console URL, a login and a curl command
	@exec ./bin/drawbridge serve --demo

.PHONY: build
build: vendor ## Build bin/drawbridge
	@$(BUILD) -o bin/drawbridge ./cmd/drawbridge

# Finds or installs the server programs for the Postgres that is started if DATABASE_URL is not set.
.PHONY: postgres
postgres:
	@.ci/postgres

# With -trimpath, packages do not contain their folder's path, so clones share one build cache.
test: export GOFLAGS := -trimpath $(GOFLAGS)
.PHONY: test
test: test-tools verify ## Run all tests with the race detector on their own Postgres
	@go list -e -export -race ./... >/dev/null # compiled once for all packages that are tested at the same time
	@go build -ldflags='-s -w' -o bin/tested/ ./cmd/drawbridge ./cmd/samplepartner # for all of cmd/e2e
	@DRAWBRIDGE_TEST_PROGRAMS='$(CURDIR)/bin/tested' GORACE="atexit_sleep_ms=50 $$GORACE" \
		./bin/withpostgres ./bin/testcount -apart ./cmd/bench -apart ./cmd/e2e/... -race -vet=off -ldflags='-s -w' -timeout 45m $(TESTS)

# What only the tests need: a C compiler for the race detector, a browser, curl and the Postgres clients to run the documented
# commands, promtool for the alert rules, and the console's files. The clients must have the server's version, so they are
# installed together with a server, which the tests then use.
.PHONY: test-tools
test-tools:
	@.ci/need gcc gcc libc6-dev
	@.ci/need chromium-headless-shell chromium-headless-shell || command -v chromium >/dev/null # Chromium takes twice the processor time
	@.ci/need curl curl ca-certificates
	@.ci/need pg_dump postgresql
	@.ci/need promtool prometheus
	@.ci/vendor required
	@go build -o bin/ ./internal/testcount ./internal/postgres/pgtest/cmd/withpostgres

.PHONY: verify
verify: ## Check that generated code, formatting and go.mod are up to date
	@.ci/verify

.PHONY: gates
gates: test-tools ## Check the published documents with third-party linters, generators and proxies
	@.ci/gates

.PHONY: lint
lint: ## Run the linters, check the licences of what is built in and the unit file
	@$(LINT) run
	@go vet -tags walks,gates,upgrade,chaos ./cmd/e2e/...
	@go mod verify >/dev/null
	@.ci/licences
	@.ci/unit

.PHONY: fmt
fmt: ## Format Go code and templates
	@$(LINT) fmt
	@.ci/fmt-templates

.PHONY: generate
generate: ## Generate Go code from the templates
	@go tool templ generate -log-level error

# On a server with seeded data: make lists LISTS='-url http://127.0.0.1:8080 -password ... -check'
.PHONY: lists
lists: ## Measure the console's list pages under every pair of filters
	@go run ./cmd/bench lists $(LISTS)

.PHONY: screenshots
screenshots: test-tools ## Take screenshots of every page, light and dark, wide and narrow, in screenshots/
	@mkdir -p screenshots
	@DRAWBRIDGE_TEST_SCREENSHOTS='$(CURDIR)/screenshots' ./bin/withpostgres \
		go test -tags walks -count=1 -timeout 40m -run '^TestEveryPageIsAccessibleAndInert$$' ./cmd/e2e/console

.PHONY: gallery
gallery: test-tools ## Retake the README's screenshots, as a first start shows the pages, in docs/img
	@DRAWBRIDGE_TEST_GALLERY='$(CURDIR)/docs/img' ./bin/withpostgres \
		go test -tags walks -count=1 -timeout 10m -run '^TestGallery$$' ./cmd/e2e/console
	@chmod 644 docs/img/*.png

# With options: make bench BENCH='-quick -only api'
.PHONY: bench
bench: vendor postgres ## Measure throughput and latency, each figure compared with its floor
	@go run ./cmd/bench $(BENCH)

MINUTES ?= 30
# With options: make soak MINUTES=10 SOAK='-share 0.8 -out /tmp/soak.jsonl'
.PHONY: soak
soak: vendor postgres ## Load the program for MINUTES (30) and judge whether it stays flat; writes soak.jsonl
	@go run ./cmd/bench soak -minutes $(MINUTES) $(SOAK)

# The full form of tests that make test runs in a small form; they kill only their own processes.
.PHONY: chaos
chaos: vendor postgres ## Kill processes and Postgres under load, and check that nothing is lost
	@.ci/need pgbouncer pgbouncer
	@go test ./cmd/e2e/faults -run '$(CHAOS)' -count=1 -v -timeout 40m -tags chaos -chaos

.PHONY: upgrade-test
upgrade-test: postgres ## Upgrade from the previous release under load, and go back
	@go test ./cmd/e2e/faults -tags upgrade -run '^Test(PreviousReleaseOnThisSchema|UpgradeUnderLoad)$$' -count=1 -v -timeout 15m

# Needs root: it installs a Debian in a folder. With TESTS, it runs only those tests there.
.PHONY: fresh-test
fresh-test: ## Try make run and make test on a fresh minimal Debian, as root and as a user
	@.ci/fresh $(TESTS)

.PHONY: reproducible
reproducible: ## Build twice from empty caches and compare
	@.ci/reproducible

.PHONY: walks
walks: test-tools ## Do the console's tasks by keyboard alone and without script, and check every page in four appearances
	@./bin/withpostgres go test ./cmd/e2e/console -tags walks -run '^TestEvery(Task|PageIsAccessible)' -count=1 -v -timeout 20m

.PHONY: fuzz
fuzz: ## Run every fuzz target for FUZZTIME (10m) each
	@.ci/fuzz $(FUZZTIME)

.PHONY: vendor
vendor: ## Fetch the console's third-party files with npm
	@.ci/vendor

.PHONY: clean
clean: ## Remove what was built and fetched; development data in .data stays
	@rm -rf bin static/node_modules tools/node_modules tools/_generated
	@find static/vendor -mindepth 1 ! -name README.md -delete
