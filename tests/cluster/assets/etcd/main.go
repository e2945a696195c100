// Command etcd is the store under the test API server, built from the module
// cache because no prebuilt binary may be fetched.
package main

import (
	"os"

	"go.etcd.io/etcd/server/v3/etcdmain"
)

func main() { etcdmain.Main(os.Args) }
