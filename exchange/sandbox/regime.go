package sandbox

// Regime says how a sandbox runs, so that whoever builds an agent can see what survives a restart of it.
type Regime struct {
	Claim   string   // empty without a claim
	Pool    string   // the warm pool that the claim draws on
	Started string   // Warm or Cold; empty for a plain pod, of which nothing is known
	Keeps   []string // what outlives the pod: Memory, and Disk if it has volumes of its own
}

// How a sandbox came to be, and what it keeps.
const (
	Warm   = "warm"
	Cold   = "cold"
	Memory = "memory"
	Disk   = "disk"
)

func regime(sb Sandbox, claim Claim) Regime {
	r := Regime{Claim: claim.Name, Pool: claim.Pool, Started: started(sb, claim), Keeps: []string{Memory}}
	if sb.Disk || claim.Disk {
		r.Keeps = append(r.Keeps, Disk)
	}
	return r
}

// started believes the controller's label. Without one, a Sandbox that has not its claim's name was taken from a pool, as
// long as the claim asks for nothing that a running pod cannot be given.
func started(sb Sandbox, claim Claim) string {
	switch label := sb.Labels[LabelLaunchType]; {
	case label == Warm || label == Cold:
		return label
	case claim.Name != "" && sb.Name != claim.Name && !claim.Env && !claim.Disk:
		return Warm
	}
	return Cold
}
