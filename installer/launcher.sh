#!/bin/sh
# waft's launcher: starts the active version of waft, or the version that `+<version>` or WAFT_RUNTIME names.
# Written by the installer, which sets the layout below to `xdg` (Linux) or `home` (macOS). Starts no other program
# before waft itself.
# shellcheck disable=SC2034 # waft_cache is for the file that is read at the end.
waft_layout=xdg

waft_fail() {
  printf 'waft: %s\n' "$@" >&2
  exit 1
}

if [ -n "${WAFT_HOME:-}" ]; then
  case $WAFT_HOME in
    /*) waft_root=$WAFT_HOME ;;
    *) waft_root=$PWD/$WAFT_HOME ;;
  esac
  waft_versions=$waft_root/versions waft_state=$waft_root/state waft_cache=$waft_root/cache
elif case ${HOME:-} in /*) false ;; esac then
  # A relative path would start whatever is below the current directory.
  waft_fail 'HOME is not set to an absolute path, and WAFT_HOME is not set'
elif [ "$waft_layout" = home ]; then
  waft_versions=$HOME/.waft/versions waft_state=$HOME/.waft/state waft_cache=$HOME/.waft/cache
else
  # Ignore relative values, as the XDG specification demands.
  case ${XDG_DATA_HOME:-} in /*) waft_versions=$XDG_DATA_HOME/waft/versions ;; *) waft_versions=$HOME/.local/share/waft/versions ;; esac
  case ${XDG_STATE_HOME:-} in /*) waft_state=$XDG_STATE_HOME/waft ;; *) waft_state=$HOME/.local/state/waft ;; esac
  case ${XDG_CACHE_HOME:-} in /*) waft_cache=$XDG_CACHE_HOME/waft ;; *) waft_cache=$HOME/.cache/waft ;; esac
fi

case ${1:-} in
  +?*)
    waft_version=${1#+} waft_why="named by $1"
    shift
    # A choice for this call overrides the version that a project pins.
    WAFT_RUNTIME=$waft_version
    export WAFT_RUNTIME
    ;;
  *)
    if [ -n "${WAFT_RUNTIME:-}" ]; then
      waft_version=$WAFT_RUNTIME waft_why='named by WAFT_RUNTIME'
    else
      waft_version='' waft_why='the active one'
      if [ -r "$waft_state/active.json" ]; then
        IFS= read -r waft_line <"$waft_state/active.json"
        case $waft_line in
          *'"current":"'*'"'*)
            waft_version=${waft_line#*'"current":"'}
            waft_version=${waft_version%%'"'*}
            ;;
        esac
      fi
      [ -n "$waft_version" ] || waft_fail "no version is active ($waft_state/active.json)" \
        "use one with \`waft +<version> version use <version>\`, or run the installer again"
    fi
    ;;
esac
case $waft_version in
  *[!0-9A-Za-z.+-]* | .* | '') waft_fail "the version $waft_why has no valid name" ;;
esac
waft_dir=$waft_versions/$waft_version
if [ ! -r "$waft_dir/receipt.json" ] || [ ! -r "$waft_dir/start" ]; then
  waft_fail "version $waft_version ($waft_why) is not installed in $waft_versions" \
    "use another one with \`waft +<version> version use <version>\`, or run the installer again"
fi
# shellcheck source=/dev/null
. "$waft_dir/start"
