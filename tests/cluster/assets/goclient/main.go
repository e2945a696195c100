// Command goclient uses an API server as programs written in Go do, with client-go and with
// controller-runtime, and prints for each check whether it passed.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"strings"
	"time"

	"k8s.io/client-go/rest"
)

// check is one tested behaviour of the API.
type check struct {
	name string
	run  func(ctx context.Context, on *target) error
}

// target is the server and the namespace that the checks work in.
type target struct {
	config    *rest.Config
	namespace string
}

func main() {
	server := flag.String("server", "", "the address of the API server")
	token := flag.String("token", "", "a bearer token")
	builtin := flag.String("wire", "", "print how the kinds of this builtin.json look in protobuf, and end")
	only := flag.String("run", "", "run only checks with this in their name")
	flag.Parse()
	if *builtin != "" {
		if err := wire(*builtin); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	config := &rest.Config{
		Host:            *server,
		BearerToken:     *token,
		TLSClientConfig: rest.TLSClientConfig{Insecure: strings.HasPrefix(*server, "https")},
		QPS:             1000,
		Burst:           1000,
	}
	failed := 0
	for _, each := range append(clientChecks(), runtimeChecks()...) {
		if !strings.Contains(each.name, *only) {
			continue
		}
		if err := try(each, config); err != nil {
			failed++
			fmt.Printf("FAILED %s: %v\n", each.name, err)
			continue
		}
		fmt.Printf("ok %s\n", each.name)
	}
	if failed > 0 {
		os.Exit(1)
	}
}

// try runs a check in a namespace of its own.
func try(each check, config *rest.Config) (err error) {
	ctx, cancel := context.WithTimeout(context.Background(), 40*time.Second)
	defer cancel()
	defer func() {
		if panicked := recover(); panicked != nil {
			err = fmt.Errorf("panic: %v", panicked)
		}
	}()
	on := &target{config: rest.CopyConfig(config), namespace: "go-" + each.name}
	if err := on.makeNamespace(ctx); err != nil {
		return fmt.Errorf("the namespace: %w", err)
	}
	return each.run(ctx, on)
}

// expect returns an error if the actual value differs from the expected one.
func expect[T comparable](what string, got, want T) error {
	if got != want {
		return fmt.Errorf("%s is %v and not %v", what, got, want)
	}
	return nil
}
