#!/bin/sh
# Installs waft:  curl -fsSL https://waft.sh/install.sh | sh
#
# Everything is in functions and the last line calls main, so that a download that was cut off runs nothing. Each release has its
# own copy of this script with the digests of its archives in it (scripts/release.ts writes them between the marks below): what
# it unpacks is as trustworthy as the script. Other versions are installed by the waft that it installs, which checks the signed
# release index. Nothing is changed outside of a temporary directory until the archive was checked and has started once.
set -eu

# --- release ---
RELEASE_VERSION=''
RELEASE_COMMIT=''
RELEASE_BASE='https://waft.sh'
RELEASE_MIN_DENO='2.9.0'
RELEASE_REPOSITORY=''
RELEASE_SOURCE_SHA256=''
RELEASE_KEYS=''
# platform, SHA-256
RELEASE_BUNDLES=''
# --- end of release ---

usage() {
  cat <<'EOF'
Installs waft: the WebAssembly runtime and its version manager.

  sh install.sh [options]

  -y, --yes             ask nothing, take the defaults
  --dir DIR             where the command goes      (WAFT_INSTALL_DIR; default ~/.waft/bin)
  --version TARGET      canary, nightly, latest, or an exact version to use  (WAFT_VERSION)
  --no-modify-path      leave the shell's start-up files alone  (WAFT_NO_MODIFY_PATH)
  --base URL            another release site        (WAFT_RELEASE_BASE)
  --from-source         build it here with Deno     (--kind source)
  --dry-run             say what would be done
  --uninstall           remove waft and all that it changed
  -h, --help            this text

WAFT_INSTALL_YES=1 means --yes. With WAFT_HOME set, everything is below that directory.
EOF
}

say() { printf '%s\n' "$*" >&2; }
fail() {
  printf 'install.sh: %s\n' "$@" >&2
  exit 1
}
has() { command -v "$1" >/dev/null 2>&1; }

main() {
  yes=${WAFT_INSTALL_YES:-} dir=${WAFT_INSTALL_DIR:-} target=${WAFT_VERSION:-} base=${WAFT_RELEASE_BASE:-$RELEASE_BASE}
  keep_path=${WAFT_NO_MODIFY_PATH:-} kind=bundle dry='' uninstall=''
  while [ $# -gt 0 ]; do
    case $1 in
      -y | --yes) yes=1 ;;
      --no-modify-path) keep_path=1 ;;
      --from-source) kind=source ;;
      --dry-run) dry=1 ;;
      --uninstall) uninstall=1 ;;
      -h | --help)
        usage
        return 0
        ;;
      --dir | --version | --base | --kind)
        [ $# -ge 2 ] || fail "$1 needs a value"
        case $1 in
          --dir) dir=$2 ;;
          --version) target=$2 ;;
          --base) base=$2 ;;
          --kind) kind=$2 ;;
        esac
        shift
        ;;
      --dir=*) dir=${1#*=} ;;
      --version=*) target=${1#*=} ;;
      --base=*) base=${1#*=} ;;
      --kind=*) kind=${1#*=} ;;
      *) fail "unknown option $1" "see --help" ;;
    esac
    shift
  done
  base=${base%/}
  case $base in
    https://* | http://127.0.0.1* | http://localhost* | 'http://[::1]'*) ;;
    *) fail "the release site $base must use https" ;;
  esac
  case $kind in
    bundle | source) ;;
    standalone) fail 'there is no standalone build for this script to install' 'use the bundle, or --from-source' ;;
    *) fail "unknown kind $kind: bundle or source" ;;
  esac
  [ -n "${HOME:-}" ] || [ -n "${WAFT_HOME:-}" ] || fail 'neither HOME nor WAFT_HOME is set'
  if [ -n "$uninstall" ]; then
    remove
    return
  fi
  case $RELEASE_VERSION in
    '') [ "$kind" = source ] || fail 'this copy of the script belongs to no release' "take $base/install.sh, or use --from-source" ;;
  esac
  if [ "$(id -u)" = 0 ] && [ -z "${WAFT_HOME:-}" ]; then
    say "install.sh: warning: this is root; waft goes to root's home directory, other users will not have it"
  fi
  platform
  need_tools
  umask 022
  work=$(mktemp -d "${TMPDIR:-/tmp}/waft-install.XXXXXX") || fail "no temporary directory can be made in ${TMPDIR:-/tmp}"
  trap 'rm -rf "$work"' EXIT
  trap 'exit 129' HUP
  trap 'exit 130' INT
  trap 'exit 143' TERM
  if [ "$kind" = bundle ]; then get_bundle; else get_source; fi
  run_setup
  other_version
}

# Sets os, arch and platform; explains what has no bundle before anything is downloaded.
platform() {
  system=$(uname -s)
  machine=$(uname -m)
  case $system in
    Linux) os=linux ;;
    Darwin) os=darwin ;;
    *) fail "waft does not run on $system" 'it runs on Linux and macOS' ;;
  esac
  case $machine in
    x86_64 | amd64) arch=amd64 ;;
    aarch64 | arm64) arch=arm64 ;;
    *) fail "waft has no build for $machine" 'it runs on amd64 and arm64' ;;
  esac
  # A shell under Rosetta says x86_64 on a machine that is arm64.
  if [ $os = darwin ] && [ $arch = amd64 ] && [ "$(sysctl -n sysctl.proc_translated 2>/dev/null || echo 0)" = 1 ]; then
    arch=arm64
  fi
  if [ $os = linux ] && [ "$(getconf LONG_BIT 2>/dev/null || echo 64)" = 32 ]; then
    fail 'this is a 32-bit system on a 64-bit processor' 'waft needs a 64-bit system'
  fi
  platform=$os/$arch
  [ "$kind" = bundle ] || return 0
  if [ $os = linux ] && musl; then
    fail 'this system uses the C library musl; the bundle has a Deno, and Deno is made for glibc only' \
      "install Deno $RELEASE_MIN_DENO or newer from your distribution (apk add deno), then run this script with --from-source"
  fi
  expected=$(printf '%s\n' "$RELEASE_BUNDLES" | while read -r name digest; do
    [ "$name" != "$platform" ] || printf '%s' "$digest"
  done)
  [ -n "$expected" ] || fail "release $RELEASE_VERSION has no bundle for $platform" \
    "install Deno $RELEASE_MIN_DENO or newer, then run this script with --from-source"
}

musl() {
  for loader in /lib64/ld-linux-x86-64.so.2 /lib/ld-linux-x86-64.so.2 /lib/ld-linux-aarch64.so.1 /lib64/ld-linux-aarch64.so.1; do
    [ ! -e "$loader" ] || return 1
  done
  for loader in /lib/ld-musl-*; do
    [ ! -e "$loader" ] || return 0
  done
  return 1
}

need_tools() {
  if has curl; then fetcher=curl
  elif has wget; then fetcher=wget
  else fail 'neither curl nor wget is there' 'install one of them and run this script again'; fi
  if has sha256sum; then hasher=sha256sum
  elif has shasum; then hasher=shasum
  elif has openssl; then hasher=openssl
  else fail 'none of sha256sum, shasum and openssl is there' 'without one of them nothing that is downloaded can be checked'; fi
  for tool in tar gzip mktemp; do
    has $tool || fail "$tool is not there" 'install it and run this script again'
  done
}

# fetch URL FILE
fetch() {
  if [ $fetcher = curl ]; then
    quiet=--silent
    [ ! -t 2 ] || quiet=--progress-bar
    curl --fail --show-error $quiet --location --max-redirs 3 --proto-redir '=https,http' --connect-timeout 20 \
      --speed-limit 100 --speed-time 60 --retry 2 --output "$2" "$1"
  else
    wget -q -T 60 -O "$2" "$1"
  fi || fail "$1 cannot be downloaded" 'nothing was changed'
}

digest() {
  case $hasher in
    sha256sum) sha256sum <"$1" ;;
    shasum) shasum -a 256 <"$1" ;;
    openssl) openssl dgst -sha256 -r <"$1" ;;
  esac | cut -d ' ' -f 1
}

# check FILE SHA256 URL
check() {
  found=$(digest "$1")
  [ "$found" = "$2" ] && return 0
  case $(head -c 200 "$1" | tr -d '\000' | tr '[:upper:]' '[:lower:]') in
    *'<html'* | *'<!doctype'*)
      fail "$3 is a web page, not an archive: a proxy or a login page of the network may be in between" 'nothing was changed'
      ;;
  esac
  fail "$3 is not what the release has" "its SHA-256 is $found" "expected        $2" 'nothing was changed'
}

get_bundle() {
  name=waft-$RELEASE_VERSION-$os-$arch
  url=$base/releases/$RELEASE_VERSION/$name.tar.gz
  say "downloading $url"
  fetch "$url" "$work/bundle.tar.gz"
  check "$work/bundle.tar.gz" "$expected" "$url"
  archive_digest=$expected
  unpack "$work/bundle.tar.gz"
  bundle=$work/waft-$RELEASE_VERSION
  chmod 755 "$bundle/deno" "$bundle/waft"
}

unpack() {
  (cd "$work" && gzip -dc "$1" | tar -xf -) || fail "the archive cannot be unpacked: is there room in ${TMPDIR:-/tmp}?" 'nothing was changed'
}

# Is version $1 at least version $2?
at_least() {
  a=$1 b=$2
  for _ in 1 2 3; do
    x=${a%%.*} y=${b%%.*}
    x=${x%%[!0-9]*} y=${y%%[!0-9]*}
    [ "${x:-0}" -le "${y:-0}" ] || return 0
    [ "${x:-0}" -ge "${y:-0}" ] || return 1
    case $a in *.*) a=${a#*.} ;; *) a=0 ;; esac
    case $b in *.*) b=${b#*.} ;; *) b=0 ;; esac
  done
  return 0
}

get_source() {
  has deno || fail "building waft needs Deno $RELEASE_MIN_DENO or newer, and there is no deno on the PATH" \
    'https://docs.deno.com/runtime/getting_started/installation/'
  deno_version=$(deno --version | sed -n '1s/^deno \([0-9.]*\).*/\1/p')
  at_least "${deno_version:-0}" "$RELEASE_MIN_DENO" ||
    fail "building waft needs Deno $RELEASE_MIN_DENO or newer; $(command -v deno) is ${deno_version:-unknown}"
  source=$work/source
  if [ -n "$RELEASE_REPOSITORY" ] && has git; then
    say "cloning $RELEASE_REPOSITORY"
    { git init -q "$source" &&
      git -C "$source" fetch -q --depth 1 "$RELEASE_REPOSITORY" "$RELEASE_COMMIT" &&
      git -C "$source" -c advice.detachedHead=false checkout -q FETCH_HEAD; } ||
      fail "$RELEASE_REPOSITORY cannot be cloned" 'nothing was changed'
    [ "$(git -C "$source" rev-parse HEAD)" = "$RELEASE_COMMIT" ] ||
      fail "the clone is not at the commit of release $RELEASE_VERSION" 'nothing was changed'
  else
    [ -n "$RELEASE_SOURCE_SHA256" ] || fail 'this copy of the script belongs to no release, so it knows no source' \
      "take $base/install.sh"
    url=$base/releases/$RELEASE_VERSION/waft-$RELEASE_VERSION-source.tar.gz
    say "downloading $url"
    fetch "$url" "$work/source.tar.gz"
    check "$work/source.tar.gz" "$RELEASE_SOURCE_SHA256" "$url"
    unpack "$work/source.tar.gz"
    mv "$work/waft-$RELEASE_VERSION" "$source"
  fi
  [ -z "$RELEASE_KEYS" ] || printf '%s\n' "$RELEASE_KEYS" >"$work/keys.json"
  say 'building'
  (cd "$source" && deno run -A scripts/release.ts --here "$work/built" --version "$RELEASE_VERSION" --keys "$work/keys.json" >&2) ||
    fail 'the build failed (see above)' 'nothing was changed'
  bundle=$work/built
  archive_digest=$RELEASE_SOURCE_SHA256
}

# Lets the unpacked waft put itself in place; it asks what is left open on the terminal.
run_setup() {
  set -- self install --base "$base" --sha256 "$archive_digest" --commit "$RELEASE_COMMIT" --kind "$kind"
  [ -z "$dir" ] || set -- "$@" --dir "$dir"
  [ -z "$keep_path" ] || set -- "$@" --no-modify-path
  [ -z "$dry" ] || set -- "$@" --dry-run
  waft_cache=$work/cache
  export waft_cache
  if [ -n "$yes" ]; then "$bundle/waft" "$@" --yes </dev/null
  elif terminal; then "$bundle/waft" "$@" </dev/tty
  else "$bundle/waft" "$@" --no-input --no-modify-path </dev/null; fi || fail 'nothing was activated (see above)'
  unset waft_cache
}

terminal() { (: </dev/tty) 2>/dev/null && [ -t 2 ]; }

# Another version than the script's own comes from the release index.
other_version() {
  case $target in '' | "$RELEASE_VERSION" | "v$RELEASE_VERSION") return 0 ;; esac
  [ -z "$dry" ] || return 0
  "$bundle/waft" version install "$target" --use --base "$base" || fail "$target was not installed; $RELEASE_VERSION is active"
}

remove() {
  for candidate in "$dir" "${WAFT_HOME:+$WAFT_HOME/bin}" "${HOME:+$HOME/.waft/bin}"; do
    if [ -n "$candidate" ] && [ -x "$candidate/waft" ]; then
      [ -z "$dry" ] || { "$candidate/waft" self uninstall --dry-run; return; }
      if [ -n "$yes" ]; then "$candidate/waft" self uninstall --yes </dev/null
      elif terminal; then "$candidate/waft" self uninstall </dev/tty
      else fail 'nothing was removed: give --yes, or run it in a terminal'; fi
      return
    fi
  done
  fail 'waft is not installed here' 'give the directory of the command with --dir'
}

main "$@"
