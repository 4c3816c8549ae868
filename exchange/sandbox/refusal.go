package sandbox

// Refusal is a reason why a pod may reach nobody's memory, in one word for logs and metrics.
type Refusal string

// The refusals.
const (
	NotBoundToPod       Refusal = "not_bound_to_pod"
	PodGone             Refusal = "pod_gone"
	PodReplaced         Refusal = "pod_replaced"
	PodTerminating      Refusal = "pod_terminating"
	PodFinished         Refusal = "pod_finished"
	OtherServiceAccount Refusal = "other_service_account"
	SandboxGone         Refusal = "sandbox_gone"
	SandboxReplaced     Refusal = "sandbox_replaced"
	SandboxTerminating  Refusal = "sandbox_terminating"
	NotTheSandboxesPod  Refusal = "not_the_sandboxes_pod"
	InWarmPool          Refusal = "in_warm_pool"
	ClaimGone           Refusal = "claim_gone"
	ClaimReplaced       Refusal = "claim_replaced"
	ClaimTerminating    Refusal = "claim_terminating"
	NotTheClaimsSandbox Refusal = "not_the_claims_sandbox"
	NoClaim             Refusal = "no_claim"
	NameOfAClaim        Refusal = "name_of_a_claim"
	AccountReplaced     Refusal = "service_account_replaced"
	AccountGone         Refusal = "service_account_gone"
	NoTenant            Refusal = "no_tenant"
)

// sentences tell the pod's owner what is the matter and, where something can be done, what.
var sentences = map[Refusal]string{
	NotBoundToPod:       "the token is not bound to a pod: send the one that a projected serviceAccountToken volume writes, not a service account's own",
	PodGone:             "the token's pod does not exist any more",
	PodReplaced:         "the token's pod was deleted, and another one has its name now: send the new pod's token",
	PodTerminating:      "the token's pod is being deleted",
	PodFinished:         "the token's pod has finished: nothing runs in it any more, so whoever sends its token is somebody else",
	OtherServiceAccount: "the token's pod runs under another service account than the token names",
	SandboxGone:         "the pod's Sandbox does not exist any more",
	SandboxReplaced:     "the pod's Sandbox was deleted, and another one has its name now: this pod is a leftover",
	SandboxTerminating:  "the pod's Sandbox is being deleted",
	NotTheSandboxesPod:  "the pod names a Sandbox that names another pod as its own",
	InWarmPool:          "the pod is still in warm pool: it gets a key when a SandboxClaim takes it",
	ClaimGone:           "the SandboxClaim that held the pod does not exist any more",
	ClaimReplaced:       "the SandboxClaim that held the pod was deleted, and another one has its name now: this pod is a leftover",
	ClaimTerminating:    "the SandboxClaim that holds the pod is being deleted",
	NotTheClaimsSandbox: "the pod's Sandbox names a SandboxClaim that names another Sandbox as its own",
	NoClaim:             "no SandboxClaim holds the pod, and this exchange serves claimed sandboxes only",
	NameOfAClaim:        "the pod's agent would have the name of a SandboxClaim that does not hold it: give the pod another name",
	AccountReplaced:     "the token's service account was deleted, and another one has its name now: start the pod anew",
	AccountGone:         "the token's service account does not exist any more",
	NoTenant:            "the pod's service account has no tenant: a cluster admin says which by a label on it",
}

// Sentence tells the pod's owner what is the matter.
func (r Refusal) Sentence() string { return sentences[r] }

// RefusedError says that a pod may reach nobody's memory.
type RefusedError struct{ Refusal Refusal }

// Error returns a sentence for the pod's owner.
func (e *RefusedError) Error() string { return e.Refusal.Sentence() }

func refuse(r Refusal) error { return &RefusedError{Refusal: r} }
