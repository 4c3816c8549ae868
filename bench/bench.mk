# What the inner door costs: see docs/performance.md. BENCH_FLAGS=-quick shows whether everything works; -h names the others.
.PHONY: bench bench-envoy
BENCH_FLAGS ?=
bench: build bin/bench ## the inner door alone, beside a server that allows everything; some minutes
	@bin/bench straight $(BENCH_FLAGS)

bin/bench: $(shell find bench -type f) $(SOURCES)
	@CGO_ENABLED=0 go build -trimpath -o $@ ./bench
