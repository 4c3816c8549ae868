package main_test

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sallyport/internal/keystore"
	"sallyport/internal/pgtest"
)

// startReady starts a service and waits until it says that it is ready.
func startReady(t *testing.T, name string, args ...string) *process {
	t.Helper()
	p := start(t, append([]string{name}, args...)...)
	awaitReady(t, p, name+" is ready")
	return p
}

func awaitReady(t *testing.T, p *process, says string) {
	t.Helper()
	eventually(t, says, func() error {
		select {
		case <-p.ended:
			t.Fatalf("%v ended:\n%s", p.Args[1], p.output)
		default:
		}
		if !strings.Contains(p.output.String(), says) {
			return errors.New("not yet")
		}
		return nil
	})
}

// withPassword puts a password into an address; the server of the tests asks for none, and the log must not show it.
func withPassword(t *testing.T, address, role string) string {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	u.User = url.UserPassword(role, "hunter2")
	return u.String()
}

// replicas are an exchange, a memory and two extauthz on one PostgreSQL, each under the role that we ship for it.
type replicas struct {
	server   *pgtest.Server
	exchange string
	doors    []string
	admin    string
	token    string
	services []*process
}

func startReplicas(t *testing.T) *replicas {
	t.Helper()
	r := &replicas{server: pgtest.Start(t)}
	address := r.server.Database(t)
	grants, err := os.ReadFile(filepath.Join(root, "deploy/postgres-roles.sql"))
	if err != nil {
		t.Fatal(err)
	}
	pgtest.Execute(t, address, string(grants))
	dir := shortDir(t)
	path := func(name string) string { return filepath.Join(dir, name) }
	service := func(name string, args ...string) { r.services = append(r.services, startReady(t, name, args...)) }
	service("exchange", "--listen=unix:"+path("exchange.sock"), "--dev-cluster="+dir, "--admin-key-file="+path("admin.key"),
		"--keystore="+withPassword(t, address, "sallyport_exchange"))
	r.exchange = bridge(t, path("exchange.sock"))
	for _, door := range []string{"a", "b"} {
		service("extauthz", "--listen=unix:"+path(door+".sock"), "--http-listen=unix:"+path(door+"-check.sock"), "--admin-listen=",
			"--keystore="+withPassword(t, address, "sallyport_extauthz"))
		r.doors = append(r.doors, bridge(t, path(door+"-check.sock")))
	}
	service("memory", "--listen=unix:"+path("memory.sock"), "--store="+withPassword(t, address, "sallyport_memory"))
	text, err := os.ReadFile(path("admin.key"))
	if err != nil {
		t.Fatal(err)
	}
	r.admin = strings.TrimSpace(string(text))
	r.token = mustRun(t, "dev", "token", "--data", dir, "--pod", "p", "--claim", "c")
	return r
}

// ask waits until a door answers so.
func ask(t *testing.T, door, key string, want int) {
	t.Helper()
	eventually(t, fmt.Sprintf("the door answers %d", want), func() error {
		status, text, err := callText(http.MethodGet, door+"/check", key, nil)
		if err == nil && status != want {
			err = fmt.Errorf("it answers %d %s", status, text)
		}
		return err
	})
}

// revoke revokes the keys of the pod through the admin API.
func (r *replicas) revoke(t *testing.T) {
	t.Helper()
	status, answer, err := call(http.MethodPost, r.exchange+"/v1/keys/revoke", r.admin, map[string]string{"session": "p"})
	if err != nil || status != http.StatusOK || answer["count"] == 0.0 {
		t.Fatalf("revoke: %d %v %v", status, answer, err)
	}
}

func TestReplicasOnOnePostgresRefuseWithinASecondWhatOneRevoked(t *testing.T) {
	r := startReplicas(t)
	key := mint(t, r.exchange, r.token)
	for _, door := range r.doors { // each keeps the answer, for thirty seconds
		ask(t, door, key, http.StatusOK)
	}
	r.revoke(t)
	revoked := time.Now()
	for _, door := range r.doors {
		ask(t, door, key, http.StatusUnauthorized)
	}
	if took := time.Since(revoked); took > time.Second {
		t.Errorf("both doors refuse after %s; a second is promised", took)
	}
	for _, p := range r.services {
		if strings.Contains(p.output.String(), "hunter2") {
			t.Errorf("the password is in the log of %v", p.Args[1])
		}
	}
}

func TestDoorsStayShutWhilePostgresIsAwayAndHearAgainAfterIt(t *testing.T) {
	r := startReplicas(t)
	key := mint(t, r.exchange, r.token)
	ask(t, r.doors[0], key, http.StatusOK)
	ask(t, r.doors[1], mint(t, r.exchange, r.token), http.StatusOK) // so that it knows the verification key, and not this one
	r.server.Stop(t)
	ask(t, r.doors[0], key, http.StatusOK) // inside its TTL
	ask(t, r.doors[1], key, http.StatusServiceUnavailable)
	r.server.Resume(t)
	if status, text, err := callText(http.MethodGet, r.doors[1]+"/check", key, nil); err != nil || status != http.StatusOK {
		t.Errorf("the first request after the outage: %d %s %v", status, text, err)
	}
	r.revoke(t)
	for _, door := range r.doors {
		ask(t, door, key, http.StatusUnauthorized)
	}
}

func TestExchangesThatStartAtOnceOnOnePostgresAllServe(t *testing.T) {
	server := pgtest.Start(t)
	t.Run("and make its tables", func(t *testing.T) { startAtOnce(t, server.Database(t)) })
	t.Run("and store the admin key", func(t *testing.T) {
		address := server.Database(t)
		store, err := keystore.Open(t.Context(), address, time.Now) // so that nobody waits for the tables
		if err != nil {
			t.Fatal(err)
		}
		defer store.Close() //nolint:errcheck // a test
		startAtOnce(t, address)
	})
}

func startAtOnce(t *testing.T, address string) {
	t.Helper()
	dir := shortDir(t)
	adminKey := filepath.Join(dir, "admin.key") // as a mounted Secret: all have the same
	if err := os.WriteFile(adminKey, []byte("rcl_"+strings.Repeat("a", 16)+"_"+strings.Repeat("b", 64)+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	var exchanges []*process
	for i := range 4 {
		exchanges = append(exchanges, start(t, "exchange", fmt.Sprintf("--listen=unix:%s/%d.sock", dir, i), "--dev-cluster="+dir,
			"--admin-key-file="+adminKey, "--keystore="+address))
	}
	for _, p := range exchanges {
		awaitReady(t, p, "exchange is ready")
	}
}

func TestUpKeepsItsKeysInPostgresWhenToldSo(t *testing.T) {
	server := pgtest.Start(t)
	dir := shortDir(t)
	_, env := up(t, dir, "--keystore", withPassword(t, server.Database(t), "test1"))
	key := mint(t, env["RECALL_URL"], mustRun(t, "dev", "token", "--data", dir, "--pod", "p", "--claim", "c"))
	remember(t, env["RECALL_URL"], key, "vim")
	if _, err := os.Stat(filepath.Join(dir, "keys.db")); err == nil {
		t.Error("there is a keys.db beside PostgreSQL")
	}
}
