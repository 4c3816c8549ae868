# What the inner door costs: docs/performance.md says how to read it. BENCH_FLAGS=-quick shows in seconds whether everything
# works; BENCH_FLAGS=-h names the other flags. OPA_ENVOY=PATH puts opa-envoy-plugin beside the door in bench-envoy.
.PHONY: bench bench-micro bench-straight bench-envoy
BENCH_FLAGS ?=

bench: bench-micro bench-straight bench-envoy ## all figures of the inner door in one run; 15 minutes

bench-micro: ## what a warm check allocates, which is gated, and what its parts take; seconds
	@go test ./extauthz ./extauthz/checkserver -count=1 -run 'FewAllocations$$' -v
	@go test ./extauthz ./extauthz/checkserver -run '^$$' -bench 'WarmCheck|Decode|Encode' -benchmem

bench-straight: build bin/bench ## the inner door alone, beside a server that allows everything; 7 minutes
	@bin/bench straight $(BENCH_FLAGS)
	@bin/bench straight -connections 1 -streams 16 $(BENCH_FLAGS) # as a worker thread of an Envoy asks

bench-envoy: build tools bin/bench ## the inner door behind Envoy, beside other ways of asking, and none; 7 minutes
	@bin/bench envoy $(BENCH_FLAGS)

bin/bench: $(shell find bench -type f) $(SOURCES)
	@CGO_ENABLED=0 go build -trimpath -o $@ ./bench
