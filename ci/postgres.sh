#!/usr/bin/env bash
# Install what tests/daskdl/data/sources/test_sql.py starts a server with: Debian's or Ubuntu's PostgreSQL,
# as root. No server is left running.
set -euo pipefail

if ! compgen -G '/usr/lib/postgresql/*/bin/initdb' >/dev/null; then
    apt-get update -qq
    # Before the package is there: else it makes and starts a cluster of its own.
    install -d /etc/postgresql-common
    echo 'create_main_cluster = false' >/etc/postgresql-common/createcluster.conf
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends \
        postgresql >/dev/null
fi
