// Keys makes the secrets of a deployment on one machine, such as deploy/compose, into a directory:
//
//	go run ./deploy/keys -dir deploy/compose/secrets -regions eu,us
package main

import (
	"flag"
	"fmt"
	"os"
	"strings"

	"partidor.dev/partidor/deploy/internal/keys"
)

func main() {
	dir := flag.String("dir", "deploy/compose/secrets", "where the files go")
	regions := flag.String("regions", "eu,us", "names of the regions")
	postgres := flag.String("postgres", "postgres:5432", "host and port of the ledger")
	options := flag.String("postgres-options", "sslmode=verify-full&sslrootcert=/run/secrets/ca.crt", "what follows ? in the ledger's URL")
	acl := flag.String("acl", "deploy/redis/users.acl", "the users of Redis")
	flag.Parse()
	text, err := os.ReadFile(*acl)
	if err == nil {
		err = keys.Make(keys.Plan{Dir: *dir, Regions: strings.Split(*regions, ","), Postgres: *postgres, Options: *options}, string(text))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "keys:", err)
		os.Exit(1)
	}
	fmt.Println(*dir + ": every secret is there")
}
