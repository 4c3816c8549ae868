package main

import (
	"bytes"
	"context"
	"os"
	"time"

	"sallyport/internal/periodic"
)

// reloadEvery is how soon a change of the settings file counts. The file is read, not its time: editors and Kubernetes
// replace it in ways that times do not always show.
const reloadEvery = time.Second

// followSettings reads the settings file again whenever it has changed, and gives the command line as it would be now to
// apply. A file that cannot be used changes nothing and is told once.
func (e *environment) followSettings(apply func(a *app) error) part {
	path := e.settingsFile
	before, _ := os.ReadFile(path) //nolint:gosec // the operator names the file; it was read a moment ago
	return quietly(func(ctx context.Context) {
		if path == "" {
			<-ctx.Done()
			return
		}
		periodic.Run(ctx, reloadEvery, func(context.Context) error {
			text, err := os.ReadFile(path) //nolint:gosec // the operator names the file
			if err != nil || bytes.Equal(text, before) {
				return err
			}
			before = text
			var a app
			if _, err := parse(&a, e.args, e.stdout, e.stderr); err != nil {
				return err
			}
			return apply(&a)
		}, func(err error) {
			e.log.Warn("the settings file has changed and cannot be used; the settings stay as they are", "file", path, "error", err)
		})
	})
}
