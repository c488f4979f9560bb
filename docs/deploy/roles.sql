-- Two roles: one owns the schema and migrates it, the other runs the service and owns nothing. A
-- superuser runs this file in Drawbridge's database, and again after each upgrade; running it again
-- changes nothing else:
--
--   psql --dbname=drawbridge --file=docs/deploy/roles.sql
--
-- Other names: --set=owner=NAME --set=service=NAME. Passwords: \password NAME in psql.
\set ON_ERROR_STOP on
\if :{?owner}
\else
    \set owner drawbridge_owner
\endif
\if :{?service}
\else
    \set service drawbridge_service
\endif

SELECT format('CREATE ROLE %I LOGIN', name)
  FROM unnest(ARRAY[:'owner', :'service']) AS name
 WHERE NOT EXISTS (SELECT FROM pg_roles WHERE rolname = name)
\gexec

-- Only these two roles may connect. The owner creates tables, the service does not; its chores use
-- temporary tables, which vanish with their transaction.
SELECT format('REVOKE ALL ON DATABASE %I FROM PUBLIC', current_database()),
       format('GRANT CONNECT, TEMPORARY, CREATE ON DATABASE %I TO %I', current_database(), :'owner'),
       format('GRANT CONNECT, TEMPORARY ON DATABASE %I TO %I', current_database(), :'service')
\gexec
REVOKE CREATE ON SCHEMA public FROM PUBLIC;
GRANT USAGE, CREATE ON SCHEMA public TO :"owner";
GRANT USAGE ON SCHEMA public TO :"service";

-- Lets doctor and the alerts see other roles' transactions, such as a dump that never ends.
GRANT pg_read_all_stats TO :"service";

-- Existing tables, and those that the owner's later migrations create. Backups read sequences, too.
GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO :"service";
GRANT USAGE, SELECT ON ALL SEQUENCES IN SCHEMA public TO :"service";
ALTER DEFAULT PRIVILEGES FOR ROLE :"owner" IN SCHEMA public
    GRANT SELECT, INSERT, UPDATE, DELETE ON TABLES TO :"service";
ALTER DEFAULT PRIVILEGES FOR ROLE :"owner" IN SCHEMA public
    GRANT USAGE, SELECT ON SEQUENCES TO :"service";

-- The audit log is append-only, and only the owner writes the record of migrations.
SELECT format('REVOKE UPDATE, DELETE ON %I FROM %I', tablename, :'service')
  FROM pg_tables
 WHERE schemaname = 'public'
   AND tablename = 'audit_log'
UNION ALL
SELECT format('REVOKE INSERT, UPDATE, DELETE ON %I FROM %I', tablename, :'service')
  FROM pg_tables
 WHERE schemaname = 'public'
   AND tablename IN ('goose_db_version', 'river_migration')
\gexec

-- Partitions are created by functions that run with the owner's rights.
SELECT format('REVOKE ALL ON FUNCTION %s FROM PUBLIC', oid::regprocedure),
       format('GRANT EXECUTE ON FUNCTION %s TO %I', oid::regprocedure, :'service')
  FROM pg_proc
 WHERE proname IN ('drawbridge_make_partitions', 'drawbridge_make_request_partitions')
\gexec
