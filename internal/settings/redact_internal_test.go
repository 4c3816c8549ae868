package settings

import "testing"

func TestPasswordsInAddressesAreNotShown(t *testing.T) {
	for value, want := range map[string]string{
		"sqlite:/var/lib/memory.db":                  "sqlite:/var/lib/memory.db",
		"127.0.0.1:8080":                             "127.0.0.1:8080",
		"postgres://me@db/memory?sslmode=require":    "postgres://me@db/memory?sslmode=require",
		"postgres://me:s3cret@db/memory":             "postgres://me:xxxxx@db/memory",
		"postgres://db/memory?user=me&password=s3cr": "postgres://db/memory?...",
		"postgres://me:s3%zzcret@db/memory":          "(an address that cannot be read)",
	} {
		if got := redacted(value); got != want {
			t.Errorf("%s: got %s, want %s", value, got, want)
		}
	}
}
