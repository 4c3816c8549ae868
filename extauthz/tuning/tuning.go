package tuning

import (
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"sync"
	"time"

	"sallyport/extauthz"
)

// Settings are what can be changed while the door runs. A nil field stays as it is.
type Settings struct {
	RevocationCacheTTL  *time.Duration
	RevocationCacheSize *int
	VerifiedCacheSize   *int64
	LogAllows           *int // lines a second
	LogDenials          *int // lines a second of each reason
}

// Door is what is tuned.
type Door struct {
	Authorizer *extauthz.Authorizer
	Revocation *extauthz.RevocationCache
	Verified   *extauthz.VerifiedCache
	Decisions  *extauthz.DecisionLog
	Log        *slog.Logger
	Now        func() time.Time

	mu    sync.Mutex // one change at a time
	began time.Time
}

// NewDoor returns a Door.
func NewDoor(a *extauthz.Authorizer, r *extauthz.RevocationCache, v *extauthz.VerifiedCache, l *extauthz.DecisionLog, now func() time.Time, log *slog.Logger) *Door {
	return &Door{Authorizer: a, Revocation: r, Verified: v, Decisions: l, Log: log, Now: now, began: now()}
}

// Apply changes settings and says so in the log; by says who asked. What cannot be is an error, and nothing is changed that
// comes after it.
func (d *Door) Apply(s Settings, by string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	before := d.Revocation.Stats()
	if s.RevocationCacheTTL != nil && *s.RevocationCacheTTL != before.TTL {
		if err := d.Revocation.SetTTL(*s.RevocationCacheTTL); err != nil {
			return err
		}
		d.changed("revocation-cache-ttl", before.TTL, *s.RevocationCacheTTL, by)
	}
	if s.RevocationCacheSize != nil && *s.RevocationCacheSize != before.Size {
		if err := d.Revocation.SetSize(*s.RevocationCacheSize); err != nil {
			return err
		}
		d.changed("revocation-cache-size", before.Size, *s.RevocationCacheSize, by)
	}
	if size := d.Verified.Stats().Size; s.VerifiedCacheSize != nil && *s.VerifiedCacheSize != size {
		if err := d.Verified.SetSize(*s.VerifiedCacheSize); err != nil {
			return err
		}
		d.changed("verified-cache-size", size, *s.VerifiedCacheSize, by)
	}
	return d.applyLogRates(s, by)
}

func (d *Door) applyLogRates(s Settings, by string) error {
	before := d.Decisions.Rates()
	rates := before
	if s.LogAllows != nil {
		rates.Allows = *s.LogAllows
	}
	if s.LogDenials != nil {
		rates.Denials = *s.LogDenials
	}
	if err := d.Decisions.SetRates(rates); err != nil {
		return err
	}
	if rates.Allows != before.Allows {
		d.changed("log-allows", before.Allows, rates.Allows, by)
	}
	if rates.Denials != before.Denials {
		d.changed("log-denials", before.Denials, rates.Denials, by)
	}
	return nil
}

func (d *Door) changed(setting string, from, to any, by string) {
	d.Log.Info("setting changed", "setting", setting, "from", fmt.Sprint(from), "to", fmt.Sprint(to), "by", by)
}

// Set reads one setting by its flag's name, "ttl" and "size" for short.
func (s *Settings) Set(name, value string) error {
	var err error
	switch name {
	case "ttl", "revocation-cache-ttl":
		var ttl time.Duration
		if ttl, err = time.ParseDuration(value); err != nil {
			return fmt.Errorf("%s=%s: write a duration, such as 10s", name, value)
		}
		s.RevocationCacheTTL = &ttl
	case "size", "revocation-cache-size":
		var size int
		if size, err = strconv.Atoi(value); err != nil {
			return fmt.Errorf("%s=%s: write a number of keys", name, value)
		}
		s.RevocationCacheSize = &size
	case "verified-cache-size":
		var size int64
		if size, err = strconv.ParseInt(value, 10, 64); err != nil {
			return fmt.Errorf("%s=%s: write a number of keys", name, value)
		}
		s.VerifiedCacheSize = &size
	case "log-allows", "log-denials":
		rate, err := strconv.Atoi(value)
		if err != nil {
			return fmt.Errorf("%s=%s: write a number of lines a second", name, value)
		}
		if name == "log-allows" {
			s.LogAllows = &rate
		} else {
			s.LogDenials = &rate
		}
	default:
		return errors.New(name + " is no setting that can be changed: those are ttl, size, verified-cache-size, log-allows and log-denials")
	}
	return nil
}
