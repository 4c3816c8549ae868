# kube-tools builds the kube-apiserver and the etcd that the outer door's tests run against, once: 5 to 8 minutes on two
# cores, and 3 seconds whenever tools/kube/go.sum has not changed what they are made of.
.PHONY: kube-tools
KUBE_TOOLS := .tools/kube
KUBE_GO    := CGO_ENABLED=0 go build -C tools/kube -trimpath -buildvcs=false
KUBE_VERSION = $(shell sed -n 's/.*k8s.io\/kubernetes v\([0-9.]*\)$$/\1/p' tools/kube/go.mod)
kube-tools: $(KUBE_TOOLS)/.built
$(KUBE_TOOLS)/.built: tools/kube/go.sum tools/kube/kube.mk
	@mkdir -p $(KUBE_TOOLS)
	@echo "building etcd: about a minute, once"
	@$(KUBE_GO) -ldflags "-s -w" -o $(abspath $(KUBE_TOOLS))/etcd go.etcd.io/etcd/server/v3
	@echo "building kube-apiserver $(KUBE_VERSION): 5 to 8 minutes on two cores, once"
	@$(KUBE_GO) -ldflags "-s -w -X k8s.io/component-base/version.gitVersion=v$(KUBE_VERSION) -X k8s.io/component-base/version.gitMajor=$(word 1,$(subst ., ,$(KUBE_VERSION))) -X k8s.io/component-base/version.gitMinor=$(word 2,$(subst ., ,$(KUBE_VERSION)))" \
		-o $(abspath $(KUBE_TOOLS))/kube-apiserver k8s.io/kubernetes/cmd/kube-apiserver
	@touch $@

.PHONY: bench-exchange
bench-exchange: kube-tools ## what an exchange costs the API server and the caller, beside a bare TokenReview; two minutes
	@go test -run '^$$' -bench 'BenchmarkExchange' -benchtime=2000x ./exchange/kubernetes
	@go test -run '^$$' -bench 'BenchmarkTwoHundredASecond' -benchtime=12000x ./exchange/kubernetes
	@go test -run '^$$' -bench 'BenchmarkPodDeletedToFirstRefusal' -benchtime=50x ./cmd/sallyport
