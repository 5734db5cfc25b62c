#!/usr/bin/env bash
# Runs roles.sql with passwords from files DIR/ledger-ROLE.password, such as Docker secrets. Which server and database is said by
# the PG* variables, or by the image whose initialisation directory this is put into.
set -euo pipefail
dir=${PARTIDOR_SECRETS:-/run/secrets}
for role in owner rebalancer gateway operator backup; do
  name=PARTIDOR_${role^^}_PASSWORD
  export "$name=$(<"$dir/ledger-$role.password")"
done
exec psql --no-psqlrc --quiet --username "${PGUSER:-${POSTGRES_USER:-postgres}}" --dbname "${PGDATABASE:-${POSTGRES_DB:-partidor}}" \
  --file "${PARTIDOR_ROLES:-$(dirname "${BASH_SOURCE[0]}")/roles.sql}"
