package main

import (
	"path/filepath"

	"sallyport/gateway/xds"
)

type envoyCommand struct {
	Render envoyRenderCommand `cmd:"" help:"Print the configuration that 'up' uses, or that a gateway.yaml describes."`
}

type envoyRenderCommand struct {
	upFlags
	HeaderPrefix string `help:"Begins the name of every trusted header." default:"x-sallyport-"`
	Gateway      string `arg:"" optional:"" help:"A gateway.yaml; without one, what 'up' uses." placeholder:"FILE"`
}

// Run prints the configuration.
func (c *envoyRenderCommand) Run(env *environment) error {
	g, err := c.described()
	if err != nil {
		return err
	}
	text, err := xds.Render(g)
	if err != nil {
		return err
	}
	_, err = env.stdout.Write(text)
	return err
}

func (c *envoyRenderCommand) described() (xds.Gateway, error) {
	if c.Gateway != "" {
		return xds.ReadFile(c.Gateway)
	}
	path, err := filepath.Abs(c.Data)
	return c.gateway(&dataDir{path: path}, c.HeaderPrefix), err
}
