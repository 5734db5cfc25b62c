// Package parameter is what operators can tune while the system runs: names, bounds and defaults of the rows of the
// ledger's table parameter, and their values in the form that plans and gateways use.
//
// A value is JSON: durations are Go strings ("2m"), fractions are numbers from 0 to 1 or percentages ("5%"), shares are
// parts per million or percentages, switches are true or false. A row that cannot be understood is reported and not used.
package parameter
