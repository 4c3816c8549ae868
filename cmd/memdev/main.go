package main

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"sallyport/gateway"
	"sallyport/memory"
	"sallyport/memory/api"
	"sallyport/memory/belief"
	"sallyport/memory/sqlitestore"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	st, err := sqlitestore.Open(ctx, os.Args[1])
	if err != nil {
		panic(err)
	}
	open := len(os.Args) > 3 && os.Args[3] == "open"
	v := belief.Closed()
	if open {
		v = belief.Open()
	}
	svc := memory.NewService(st, memory.Options{Vocabulary: &v})
	go svc.Run(ctx)
	h := api.NewHandler(svc, api.Typed(open), gateway.DefaultHeaders(), nil)
	front := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if k, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer "); ok && !strings.HasPrefix(k, "rcl_") && k != "bad" {
			p := append(strings.Split(k, "/"), "", "")
			r.Header.Set("x-sallyport-namespace", p[0])
			if p[1] != "" {
				r.Header.Set("x-sallyport-session", p[1])
			}
			if p[2] != "" {
				r.Header.Set("x-sallyport-agent", p[2])
			}
		}
		h.ServeHTTP(w, r)
	})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	os.WriteFile(os.Args[2], []byte(l.Addr().String()), 0o600)
	srv := &http.Server{Handler: front}
	go srv.Serve(l)
	<-ctx.Done()
	c, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	fmt.Println(srv.Shutdown(c), svc.Close(c), st.Close())
}
