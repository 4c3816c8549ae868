package main

import (
	"fmt"
	"time"

	"sallyport/exchange/devcluster"
)

// devCommand is the stand-in for a cluster on a laptop.
type devCommand struct {
	Token devTokenCommand `cmd:"" help:"Print the token that would be projected into a pod, and make the pod known."`
	Claim devClaimCommand `cmd:"" help:"Take or delete a SandboxClaim."`
	Pod   devPodCommand   `cmd:"" help:"Delete a pod."`
}

type devFlags struct {
	Data      string `help:"The directory that 'up' uses." default:".sallyport"`
	Namespace string `help:"The Kubernetes namespace." default:"agents"`
}

type devTokenCommand struct {
	devFlags
	Pod            string        `help:"The pod's name." required:""`
	Claim          string        `help:"The SandboxClaim that holds the pod." xor:"owner"`
	WarmPool       string        `help:"The warm pool that the pod waits in." xor:"owner"`
	ServiceAccount string        `help:"The pod's service account." default:"default"`
	Audience       string        `help:"The audience that the token is for." default:"recall"`
	TTL            time.Duration `help:"How long the token is valid." default:"1h"`
}

// Run prints a token.
func (c *devTokenCommand) Run(env *environment) error {
	cluster, err := openDevCluster(env.ctx, c.Data)
	if err != nil {
		return err
	}
	defer env.close(cluster.Close)
	pod, err := cluster.EnsurePod(env.ctx, devcluster.PodSpec{
		Namespace: c.Namespace, Name: c.Pod, ServiceAccount: c.ServiceAccount, Claim: c.Claim, WarmPool: c.WarmPool,
	})
	if err != nil {
		return err
	}
	token, err := cluster.issuer.Token(pod, c.Audience, c.TTL)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(env.stdout, token)
	return err
}

type devClaimCommand struct {
	Take   devClaimTakeCommand   `cmd:"" help:"Give a pod that waits in a warm pool to a claim."`
	Delete devClaimDeleteCommand `cmd:"" help:"Delete a claim; its pod stays as a leftover."`
}

type devClaimTakeCommand struct {
	devFlags
	Claim string `help:"The claim's name." required:""`
	Pod   string `help:"The pod that it takes." required:""`
}

// Run takes a pod.
func (c *devClaimTakeCommand) Run(env *environment) error {
	return c.change(env, func(cluster *devCluster) error { return cluster.TakeClaim(env.ctx, c.Namespace, c.Claim, c.Pod) })
}

type devClaimDeleteCommand struct {
	devFlags
	Claim string `help:"The claim's name." required:""`
}

// Run deletes a claim.
func (c *devClaimDeleteCommand) Run(env *environment) error {
	return c.change(env, func(cluster *devCluster) error { return cluster.DeleteClaim(env.ctx, c.Namespace, c.Claim) })
}

type devPodCommand struct {
	Delete devPodDeleteCommand `cmd:"" help:"Delete a pod."`
}

type devPodDeleteCommand struct {
	devFlags
	Pod string `help:"The pod's name." required:""`
}

// Run deletes a pod.
func (c *devPodDeleteCommand) Run(env *environment) error {
	return c.change(env, func(cluster *devCluster) error { return cluster.DeletePod(env.ctx, c.Namespace, c.Pod) })
}

func (f devFlags) change(env *environment, do func(*devCluster) error) error {
	cluster, err := openDevCluster(env.ctx, f.Data)
	if err != nil {
		return err
	}
	defer env.close(cluster.Close)
	return do(cluster)
}
