package main

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"strings"
)

// backend is the word that makes the benchmark's own program what stands behind Envoy.
const backend = "backend"

const backendAnswer = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}"

// serveBackend answers every request alike, and as cheaply as it can be done: a request has no body, and of its head only
// the end matters.
func serveBackend(ctx context.Context, socket string) error {
	l, err := new(net.ListenConfig).Listen(ctx, "unix", socket)
	if err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	defer context.AfterFunc(ctx, func() { _ = l.Close() })() // which ends Accept
	for {
		conn, err := l.Accept()
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return fmt.Errorf("accept: %w", err)
		}
		go answer(conn) // until Envoy hangs up, or this process ends
	}
}

func answer(conn net.Conn) {
	defer conn.Close() //nolint:errcheck // nothing is left to be sent
	in := bufio.NewReader(conn)
	for {
		line, err := in.ReadSlice('\n')
		if err != nil {
			return
		}
		if len(strings.TrimSpace(string(line))) > 0 {
			continue
		}
		if _, err := conn.Write([]byte(backendAnswer)); err != nil {
			return
		}
	}
}
