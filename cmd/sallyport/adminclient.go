package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"time"
)

// adminFlags say where the admin API is and with which key.
type adminFlags struct {
	URL          string `help:"Where the gateway is." env:"RECALL_URL" placeholder:"URL"`
	AdminKeyFile string `help:"File with an admin key." env:"SALLYPORT_ADMIN_KEY_FILE" placeholder:"FILE"`
	Data         string `help:"The directory of a running 'up', for both." default:".sallyport"`
}

// find returns the address and the admin key: as told, else those of the `up` that runs in --data.
func (f adminFlags) find() (base, key string, err error) {
	base, file := f.URL, f.AdminKeyFile
	if base == "" || file == "" {
		running, err := readEnvFile(f.Data)
		if err != nil {
			return "", "", fmt.Errorf("no address or key is given (--url, --admin-key-file), and no 'up' runs in --data %s: %w", f.Data, err)
		}
		if base == "" {
			base = running["RECALL_URL"]
		}
		if file == "" {
			file = running["SALLYPORT_ADMIN_KEY_FILE"]
		}
	}
	text, err := os.ReadFile(file) //nolint:gosec // the operator names the file
	if err != nil {
		return "", "", fmt.Errorf("read the admin key: %w", err)
	}
	return strings.TrimRight(base, "/"), strings.TrimSpace(string(text)), nil
}

// call makes one call to the admin API and returns the answer's body, or the server's own sentence as an error.
func (f adminFlags) call(ctx context.Context, method, path string, ask any) ([]byte, error) {
	const bound, maxAnswer = 10 * time.Second, 64 << 20
	base, key, err := f.find()
	if err != nil {
		return nil, err
	}
	var body io.Reader
	if ask != nil {
		text, err := json.Marshal(ask)
		if err != nil {
			return nil, fmt.Errorf("encode the call: %w", err)
		}
		body = bytes.NewReader(text)
	}
	ctx, cancel := context.WithTimeout(ctx, bound)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, method, base+path, body)
	if err != nil {
		return nil, fmt.Errorf("--url: %w", err)
	}
	r.Header.Set("Authorization", "Bearer "+key)
	r.Header.Set("Content-Type", "application/json")
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return nil, fmt.Errorf("reach the gateway: %w", err)
	}
	defer answer.Body.Close() //nolint:errcheck // it is read to its end
	text, err := io.ReadAll(io.LimitReader(answer.Body, maxAnswer))
	if err != nil {
		return nil, fmt.Errorf("read the answer: %w", err)
	}
	if answer.StatusCode < http.StatusBadRequest {
		return text, nil
	}
	return nil, refusal(answer.Status, text)
}

// refusal is the server's own sentence.
func refusal(status string, text []byte) error {
	var refused struct {
		Error struct{ Code, Message string }
	}
	if json.Unmarshal(text, &refused) != nil || refused.Error.Message == "" {
		return errors.New("the answer was " + status)
	}
	return errors.New(refused.Error.Message + " (" + refused.Error.Code + ")")
}
