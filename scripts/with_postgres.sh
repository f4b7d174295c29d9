#!/usr/bin/env bash
# Runs a command with DATABASE_URL set to a temporary PostgreSQL server: with_postgres.sh COMMAND [ARG…]
#
# The server listens on loopback and keeps its data in a temporary folder; both are removed afterwards. Uses Debian's
# PostgreSQL; without it, and without DATABASE_URL, the command still runs, and its tests report the missing database.
set -euo pipefail
case ${1:-} in
  -h | --help) sed -n '2,5s/^# \{0,1\}//p' "$0"; exit 0 ;;
  '' | -*) echo "usage: with_postgres.sh COMMAND [ARG…]" >&2; exit 2 ;;
esac
bin=$(ls -d /usr/lib/postgresql/*/bin 2>/dev/null | sort -V | tail -n 1 || true)
if [ -n "${DATABASE_URL:-}" ] || [ -z "$bin" ]; then
  exec "$@"
fi
folder=$(mktemp -d)
# The server refuses to run as root: Debian's postgres account then owns the folder and runs it.
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
"${as[@]}" "$bin/initdb" -D "$folder/data" -U waft -A trust -E UTF8 -N >"$folder/initdb.log" ||
  { cat "$folder/initdb.log"; exit 1; }
# Picks a random port; retries with another if it is in use.
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
