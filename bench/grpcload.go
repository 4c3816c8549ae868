package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/encoding/protowire"
)

const (
	checkMethod = "/envoy.service.auth.v3.Authorization/Check"
	// askTimeout is sent along, as Envoy does.
	askTimeout = 5 * time.Second
)

// grpcAsker replays checks over one connection, as bytes: the client does as little as it can.
type grpcAsker struct {
	conn   *grpc.ClientConn
	checks [][]byte
	shared bool // the connection is another's to close
}

func dialGRPC(socket string, checks [][]byte) (*grpcAsker, error) {
	conn, err := grpc.NewClient("unix:"+socket, grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithDefaultCallOptions(grpc.ForceCodecV2(bytesCodec{})))
	if err != nil {
		return nil, fmt.Errorf("dial %s: %w", socket, err)
	}
	return &grpcAsker{conn: conn, checks: checks}, nil
}

var errRefused = errors.New("refused")

// ask asks with the i-th key.
func (a *grpcAsker) ask(ctx context.Context, i int) error { return a.send(ctx, a.checks[i]) }

// send returns errRefused for a denial.
func (a *grpcAsker) send(ctx context.Context, check []byte) error {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	var answer []byte
	if err := a.conn.Invoke(ctx, checkMethod, &check, &answer); err != nil {
		return fmt.Errorf("ask: %w", err)
	}
	return verdict(answer)
}

// beside returns one that asks over the same connection at the same time.
func (a *grpcAsker) beside() *grpcAsker {
	return &grpcAsker{conn: a.conn, checks: a.checks, shared: true}
}

func (a *grpcAsker) close() error {
	if a.shared {
		return nil
	}
	return a.conn.Close()
}

// verdict reads of a CheckResponse only which of its answers is there.
func verdict(answer []byte) error {
	const denied, allowed protowire.Number = 2, 3
	found := errors.New("an answer that says neither yes nor no")
	for len(answer) > 0 {
		field, kind, n := protowire.ConsumeTag(answer)
		if n < 0 {
			return fmt.Errorf("read the answer: %w", protowire.ParseError(n))
		}
		size := protowire.ConsumeFieldValue(field, kind, answer[n:])
		if size < 0 {
			return fmt.Errorf("read the answer: %w", protowire.ParseError(size))
		}
		switch field {
		case denied:
			found = errRefused
		case allowed:
			found = nil
		}
		answer = answer[n+size:]
	}
	return found
}

// bytesCodec sends what is already encoded. Without a name the content type is application/grpc, as Envoy's.
type bytesCodec struct{}

func (bytesCodec) Name() string { return "" }

func (bytesCodec) Marshal(v any) (mem.BufferSlice, error) {
	return mem.BufferSlice{mem.SliceBuffer(*v.(*[]byte))}, nil
}

func (bytesCodec) Unmarshal(data mem.BufferSlice, v any) error {
	*v.(*[]byte) = data.Materialize()
	return nil
}
