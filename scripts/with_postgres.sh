#!/usr/bin/env bash
# Runs a command with DATABASE_URL set to a PostgreSQL server of its own: with_postgres.sh COMMAND [ARG…]
#
# The server listens on loopback, its data lies in a temporary folder, and both are gone afterwards. Takes Debian's
# PostgreSQL; without one, and without DATABASE_URL, the command runs all the same and its tests say what they miss.
set -euo pipefail
bin=$(ls -d /usr/lib/postgresql/*/bin 2>/dev/null | sort -V | tail -n 1 || true)
if [ -n "${DATABASE_URL:-}" ] || [ -z "$bin" ]; then
  exec "$@"
fi
folder=$(mktemp -d)
# The server refuses to run as root: then the account that Debian made for it owns the folder and runs it.
as=()
if [ "$(id -u)" = 0 ]; then
  chown postgres "$folder"
  as=(setpriv --reuid=postgres --regid=postgres --clear-groups --)
fi
stop() {
  cd /
  "${as[@]}" "$bin/pg_ctl" -D "$folder/data" -m immediate -s stop || true
  rm -rf "$folder"
}
trap stop EXIT
export LC_ALL=C
cd "$folder"
"${as[@]}" "$bin/initdb" -D "$folder/data" -U waft -A trust -E UTF8 -N >"$folder/initdb.log" || { cat "$folder/initdb.log"; exit 1; }
# Any port; when it is taken, another is tried.
for _ in 1 2 3 4 5; do
  port=$((20000 + RANDOM % 20000))
  if "${as[@]}" "$bin/pg_ctl" -D "$folder/data" -s -w -l "$folder/data/log" \
    -o "-p $port -c listen_addresses=127.0.0.1 -c unix_socket_directories='' -c max_connections=200" start; then
    started=1
    break
  fi
done
[ -n "${started:-}" ] || { cat "$folder/data/log"; exit 1; }
cd "$OLDPWD"
DATABASE_URL="postgres://waft@127.0.0.1:$port/postgres" "$@"
