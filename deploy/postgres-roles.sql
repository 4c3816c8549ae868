-- The roles of Sallyport in one PostgreSQL database. Run it once in that database, as one who may make roles:
--
--   createdb sallyport && psql -d sallyport -f postgres-roles.sql
--
-- and give each role its password (psql: \password sallyport_exchange) or its certificate. Running it again does no harm.
-- Keep the database for Sallyport alone: PostgreSQL lets whoever may connect send notifications, and one who forged them
-- could make the doors refuse a good key until it is read anew.

DO $$
DECLARE
    role TEXT;
BEGIN
    FOREACH role IN ARRAY ARRAY['sallyport_exchange', 'sallyport_extauthz', 'sallyport_memory'] LOOP
        IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = role) THEN
            EXECUTE format('CREATE ROLE %I LOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE NOBYPASSRLS', role);
        END IF;
        EXECUTE format('GRANT CONNECT ON DATABASE %I TO %I', current_database(), role);
    END LOOP;
    EXECUTE format('REVOKE ALL ON DATABASE %I FROM PUBLIC', current_database());
END $$;

-- exchange writes the keys, and brings their tables up to date when it starts.
CREATE SCHEMA IF NOT EXISTS sallyport_keys AUTHORIZATION sallyport_exchange;

-- extauthz reads keys and listens, which needs no grant. It changes nothing, not even the tables' version: start an
-- exchange first.
GRANT USAGE ON SCHEMA sallyport_keys TO sallyport_extauthz;
GRANT SELECT ON ALL TABLES IN SCHEMA sallyport_keys TO sallyport_extauthz;
ALTER DEFAULT PRIVILEGES FOR ROLE sallyport_exchange IN SCHEMA sallyport_keys GRANT SELECT ON TABLES TO sallyport_extauthz;

-- memory has its own tables and never sees a key.
CREATE SCHEMA IF NOT EXISTS sallyport_memory AUTHORIZATION sallyport_memory;
