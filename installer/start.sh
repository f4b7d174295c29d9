# Starts this version of waft; sourced by the launcher and by the script `waft` beside it.
# Input: waft_dir (this directory), waft_cache (may be empty), the arguments.
# shellcheck shell=sh disable=SC2154
if [ -z "${waft_cache:-}" ]; then
  if [ -n "${WAFT_HOME:-}" ]; then
    waft_cache=$WAFT_HOME/cache
  elif [ "$(uname -s)" = Linux ]; then
    case ${XDG_CACHE_HOME:-} in /*) waft_cache=$XDG_CACHE_HOME/waft ;; *) waft_cache=$HOME/.cache/waft ;; esac
  else
    waft_cache=$HOME/.waft/cache
  fi
fi
# Deno keeps compiled code there; the user's own Deno is not affected.
DENO_DIR=$waft_cache/deno
DENO_NO_UPDATE_CHECK=1
export DENO_DIR DENO_NO_UPDATE_CHECK
# Deno executes compiled code unchecked, so none is taken from a directory of another user, nor from the current
# directory. Deno itself would make its directory under the caller's umask, so that others may be able to write to it.
[ -d "$DENO_DIR" ] || (umask 077 && mkdir -p "$DENO_DIR") 2>/dev/null
waft_code_cache=--no-code-cache
case $waft_cache in
  /*) if [ -O "$waft_cache" ] && [ -O "$DENO_DIR" ]; then waft_code_cache=; fi ;;
esac
waft_command=${1:-}${2:+ $2}
# Remote code is never loaded. V8's young generation begins with room for a whole short run, which is then not collected.
# FFI makes every other permission meaningless, so all are granted; the commands that work on downloads run without FFI.
set -- --quiet --no-config --no-lock --no-check --no-remote --no-npm --v8-flags=--min-semi-space-size=4 \
  ${waft_code_cache:+"$waft_code_cache"} "$waft_dir/lib/waft.js" "$@"
case $waft_command in 'version' | 'version '* | 'self '*) set -- --deny-ffi "$@" ;; esac
if [ "$waft_command" = 'self uninstall' ]; then
  # Deno writes to its directory on exit, which would be after the removal.
  DENO_DIR=$(mktemp -d "${TMPDIR:-/tmp}/waft-uninstall.XXXXXX") || exit 1
  "$waft_dir/deno" run -A "$@"
  waft_status=$?
  rm -rf "$DENO_DIR"
  exit $waft_status
fi
exec "$waft_dir/deno" run -A "$@"
