#!/usr/bin/env bash
# Install Debian's or Ubuntu's PostgreSQL, as root, for tests/daskdl/data/sources/test_sql.py.
# No server is left running.
set -euo pipefail

if ! compgen -G '/usr/lib/postgresql/*/bin/initdb' >/dev/null; then
    apt-get update -qq
    # Written before the package is installed, so that it does not make and start a cluster.
    install -d /etc/postgresql-common
    echo 'create_main_cluster = false' >/etc/postgresql-common/createcluster.conf
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends \
        postgresql >/dev/null
fi
