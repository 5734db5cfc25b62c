-- Who may do what in the ledger. Run once by an administrator in the ledger's database, before the first migration, and again
-- whenever a password has changed:
--
--   PARTIDOR_OWNER_PASSWORD=… (and so on) psql -d partidor -f roles.sql
--
--   login                       for                            may
--   partidor_owner_login        rebalancer migrate             change the schema, and nothing else is it used for
--   partidor_rebalancer_login   rebalancers                    read and write everything but past history, not change the schema
--   partidor_gateway_login      gateways                       read rules, tenants, digests of keys, regions, parameters
--   partidor_operator_login     people with psql               edit rules, tenants, keys, regions, parameters; recorded
--   partidor_backup_login       pg_dump                        read everything
--
-- What the three group roles may do is granted by the migrations (00008_roles.sql and later ones).

\set ON_ERROR_STOP on
\getenv owner PARTIDOR_OWNER_PASSWORD
\getenv rebalancer PARTIDOR_REBALANCER_PASSWORD
\getenv gateway PARTIDOR_GATEWAY_PASSWORD
\getenv operator PARTIDOR_OPERATOR_PASSWORD
\getenv backup PARTIDOR_BACKUP_PASSWORD

BEGIN;

SELECT format('CREATE ROLE %I NOLOGIN', name)
  FROM unnest(ARRAY['partidor_gateway', 'partidor_operator', 'partidor_rebalancer']) name
 WHERE NOT EXISTS (SELECT FROM pg_roles WHERE rolname = name) \gexec
SELECT format('CREATE ROLE %I LOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE NOREPLICATION', name)
  FROM unnest(ARRAY['partidor_owner_login', 'partidor_rebalancer_login', 'partidor_gateway_login',
                    'partidor_operator_login', 'partidor_backup_login']) name
 WHERE NOT EXISTS (SELECT FROM pg_roles WHERE rolname = name) \gexec

SET LOCAL password_encryption = 'scram-sha-256';
SET LOCAL log_statement = 'none';
ALTER ROLE partidor_owner_login PASSWORD :'owner';
ALTER ROLE partidor_rebalancer_login PASSWORD :'rebalancer';
ALTER ROLE partidor_gateway_login PASSWORD :'gateway';
ALTER ROLE partidor_operator_login PASSWORD :'operator';
ALTER ROLE partidor_backup_login PASSWORD :'backup';

GRANT partidor_gateway TO partidor_gateway_login;
GRANT partidor_rebalancer TO partidor_rebalancer_login;
GRANT partidor_operator TO partidor_operator_login;
GRANT pg_read_all_data TO partidor_backup_login;

-- Belt and braces: a gateway's session could not write even if it were granted something by mistake.
ALTER ROLE partidor_gateway_login SET default_transaction_read_only = on;
ALTER ROLE partidor_gateway_login SET idle_in_transaction_session_timeout = '60s';
ALTER ROLE partidor_rebalancer_login SET idle_in_transaction_session_timeout = '60s';

REVOKE ALL ON DATABASE :"DBNAME" FROM PUBLIC;
GRANT CONNECT ON DATABASE :"DBNAME"
   TO partidor_owner_login, partidor_gateway, partidor_rebalancer, partidor_operator, partidor_backup_login;
ALTER DATABASE :"DBNAME" OWNER TO partidor_owner_login;
ALTER SCHEMA public OWNER TO partidor_owner_login;
REVOKE ALL ON SCHEMA public FROM PUBLIC;
GRANT USAGE ON SCHEMA public TO partidor_gateway, partidor_rebalancer, partidor_operator, partidor_backup_login;

COMMIT;
