package settings_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/alecthomas/kong"

	"sallyport/internal/settings"
)

type line struct {
	Config kong.ConfigFlag
	Level  string `default:"info"`
	Door   struct {
		TTL   time.Duration `default:"30s"`
		Names []string
		Deep  struct {
			Size int `default:"1"`
		} `cmd:""`
		Run struct {
			Speed int `default:"1"`
		} `cmd:"" default:"withargs"`
	} `cmd:""`
}

func parse(t *testing.T, file string, args ...string) (line, error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "sallyport.yaml")
	if err := os.WriteFile(path, []byte(file), 0o600); err != nil {
		t.Fatal(err)
	}
	var l line
	k, err := kong.New(&l, kong.DefaultEnvars(settings.EnvPrefix), kong.Configuration(settings.Read), kong.Exit(func(int) { t.Fatal("exit") }))
	if err != nil {
		t.Fatal(err)
	}
	_, err = k.Parse(append(args, "--config", path))
	return l, err
}

func TestAFlagGoesBeforeItsVariableBeforeTheFileBeforeTheDefault(t *testing.T) {
	const file = "level: debug\ndoor:\n  ttl: 10s\n  names: [a, b]\n  deep:\n    size: 7\n"
	l, err := parse(t, file, "door", "deep")
	if err != nil {
		t.Fatal(err)
	}
	if l.Level != "debug" || l.Door.TTL != 10*time.Second || strings.Join(l.Door.Names, ",") != "a,b" || l.Door.Deep.Size != 7 {
		t.Errorf("from the file: %+v", l)
	}
	t.Setenv("SALLYPORT_TTL", "20s")
	if l, err = parse(t, file, "door", "deep"); err != nil || l.Door.TTL != 20*time.Second {
		t.Errorf("from the variable: %s, %v", l.Door.TTL, err)
	}
	if l, err = parse(t, file, "door", "deep", "--ttl", "40s"); err != nil || l.Door.TTL != 40*time.Second {
		t.Errorf("from the flag: %s, %v", l.Door.TTL, err)
	}
	if l, err = parse(t, "", "door", "deep"); err != nil || l.Door.Deep.Size != 1 {
		t.Errorf("an empty file: %+v, %v", l, err)
	}
}

func TestTheFlagsOfADefaultSubcommandAreInItsCommandsSection(t *testing.T) {
	for _, args := range [][]string{{"door"}, {"door", "run"}} {
		l, err := parse(t, "door:\n  speed: 7\n  ttl: 10s\n", args...)
		if err != nil || l.Door.Run.Speed != 7 || l.Door.TTL != 10*time.Second {
			t.Errorf("%v: %+v, %v", args, l, err)
		}
	}
	if _, err := parse(t, "door:\n  run:\n    speed: 7\n", "door"); err == nil || !strings.Contains(err.Error(), `"door.run"`) {
		t.Errorf("a section of its own: %v", err)
	}
}

func TestWhatNoCommandKnowsIsNamedWithItsLine(t *testing.T) {
	for file, says := range map[string][]string{
		"door:\n  tll: 10s\n":               {"line 2", `"door.tll"`, "ttl"},
		"dor:\n  ttl: 10s\n":                {"line 1", `"dor"`, "door"},
		"ttl: 10s\n":                        {"line 1", `"ttl"`},
		"door:\n  deep:\n    sise: 1\n":     {"line 3", `"door.deep.sise"`, "size"},
		"door: 7\n":                         {"line 1", "door is a command"},
		"- door\n":                          {"line 1"},
		"door:\n  ttl: {a: b}\n":            {"line 2", "ttl"},
		"door:\n  ttl: soon\n":              {"ttl"},
		"door: [\n":                         {"line"},
		"config: x\n":                       {`"config"`},
		"door:\n  ttl: 10s\n  help: true\n": {"line 3", `"door.help"`},
	} {
		_, err := parse(t, file, "door", "deep")
		if err == nil {
			t.Errorf("%q was taken", file)
			continue
		}
		for _, s := range says {
			if !strings.Contains(err.Error(), s) {
				t.Errorf("%q: %v does not say %q", file, err, s)
			}
		}
	}
}
