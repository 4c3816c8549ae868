package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"time"
)

// httpAsker sends requests over one HTTP/1.1 connection. It writes and reads them itself, so that the client takes little of
// a machine that it shares with what is measured.
type httpAsker struct {
	conn net.Conn
	in   *bufio.Reader
	out  []byte // the request that is being sent
	keys []string
}

func dialHTTP(ctx context.Context, address string, keys []string) (*httpAsker, error) {
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("dial Envoy: %w", err)
	}
	return &httpAsker{conn: conn, in: bufio.NewReader(conn), keys: keys}, nil
}

func (a *httpAsker) close() error { return a.conn.Close() }

// ask asks with the i-th key.
func (a *httpAsker) ask(ctx context.Context, i int) error {
	status, err := a.status(ctx, a.keys[i])
	if err == nil && status != http.StatusOK {
		err = fmt.Errorf("status %d", status)
	}
	return err
}

const requestHead = "GET " + askedPath + " HTTP/1.1\r\nHost: memory.sallyport.svc\r\nUser-Agent: bench\r\nAccept: application/json\r\n"

// status sends a request with a key, or without one if it is empty, and reads all of the answer.
func (a *httpAsker) status(_ context.Context, key string) (int, error) {
	if err := a.conn.SetDeadline(time.Now().Add(askTimeout)); err != nil {
		return 0, fmt.Errorf("ask: %w", err)
	}
	a.out = append(a.out[:0], requestHead...)
	if key != "" {
		a.out = append(append(append(a.out, "Authorization: Bearer "...), key...), "\r\n"...)
	}
	if _, err := a.conn.Write(append(a.out, "\r\n"...)); err != nil {
		return 0, fmt.Errorf("ask: %w", err)
	}
	status, length, err := a.readHead()
	if err != nil {
		return 0, fmt.Errorf("read the answer: %w", err)
	}
	if _, err := a.in.Discard(length); err != nil {
		return 0, fmt.Errorf("read the answer: %w", err)
	}
	return status, nil
}

var (
	headerLength = []byte("content-length: ") // as Envoy writes it
	errNoHTTP    = errors.New("it is not one that Envoy gives")
)

func (a *httpAsker) readHead() (status, length int, err error) {
	line, err := a.in.ReadSlice('\n')
	if err != nil {
		return 0, 0, err
	}
	const codeAt, codeEnd = len("HTTP/1.1 "), len("HTTP/1.1 200")
	if len(line) < codeEnd {
		return 0, 0, errNoHTTP
	}
	if status, err = strconv.Atoi(string(line[codeAt:codeEnd])); err != nil {
		return 0, 0, errNoHTTP
	}
	length = -1
	for {
		line, err := a.in.ReadSlice('\n')
		if err != nil {
			return 0, 0, errors.Join(err, io.ErrUnexpectedEOF)
		}
		line = bytes.TrimRight(line, "\r\n")
		if value, ok := bytes.CutPrefix(line, headerLength); ok {
			if length, err = strconv.Atoi(string(value)); err != nil {
				return 0, 0, errNoHTTP
			}
		}
		if len(line) == 0 {
			break
		}
	}
	if length < 0 {
		return 0, 0, errNoHTTP
	}
	return status, length, nil
}
