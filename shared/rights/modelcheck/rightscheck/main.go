// Command rightscheck searches scopes of the rights protocol exhaustively and prints what it finds, with the shortest way to
// a violation. It fails if there is one.
package main

import (
	"flag"
	"fmt"
	"os"
	"time"

	"partidor.dev/partidor/shared/rights/modelcheck"
)

func main() {
	scope := flag.String("scope", "", "search only the scope of this `name`")
	probes := flag.Bool("probes", false, "search the probes instead, in which mutants are caught")
	list := flag.Bool("list", false, "print the scopes' names")
	flag.Parse()
	if err := run(*scope, *probes, *list); err != nil {
		fmt.Fprintln(os.Stderr, "rightscheck:", err)
		os.Exit(1)
	}
}

func run(name string, probes, list bool) error {
	scopes := append(modelcheck.Short(), modelcheck.Long()...)
	if probes {
		scopes = modelcheck.Probes()
	}
	if name != "" {
		c, ok := modelcheck.Find(name)
		if !ok {
			return fmt.Errorf("no scope %q", name)
		}
		scopes = []modelcheck.Scope{c}
	}
	violated := 0
	for _, c := range scopes {
		if list {
			fmt.Println(c.Name)
			continue
		}
		begin := time.Now()
		r, err := modelcheck.Search(c)
		if err != nil {
			return err
		}
		if r.Violation != "" {
			violated++
		}
		fmt.Printf("%-40s %v (%v)\n", c.Name, r, time.Since(begin).Round(time.Millisecond))
	}
	if violated > 0 {
		return fmt.Errorf("%d scopes violated", violated)
	}
	return nil
}
