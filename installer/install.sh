#!/bin/sh
# Installs waft:  curl -fsSL https://waft.sh/install.sh | sh
#
# All code is in functions and the last line calls main, so a truncated download runs nothing. Each release has a
# separate copy of this script that contains the digests of its archives (scripts/package/release.ts writes them between
# the marks below), so the unpacked files are as trustworthy as the script. With OpenSSL 3 available, the release's list
# of checksums must also be signed by a key of the release. Other versions are installed by the installed waft, which
# checks the signed release index. Invariant: nothing outside of a temporary directory changes until the archive has
# been checked and has started once.
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

  -y, --yes             use the defaults without prompting
  --dir DIR             directory of the command    (WAFT_INSTALL_DIR; default ~/.waft/bin)
  --version TARGET      canary, nightly, latest, or an exact version to use  (WAFT_VERSION)
  --no-modify-path      leave the shell's start-up files alone  (WAFT_NO_MODIFY_PATH)
  --base URL            another release site        (WAFT_RELEASE_BASE)
  --from-source         build it here with Deno     (--kind source)
  --dry-run             show the actions, change nothing
  --uninstall           remove waft and undo its changes
  -h, --help            this text

WAFT_INSTALL_YES=1 means --yes. With WAFT_HOME set, everything is below that directory.
EOF
}

say() { printf '%s\n' "$*" >&2; }
fail() {
  printf 'install.sh: %s\n' "$@" >&2
  exit 1
}
misused() {
  printf 'install.sh: %s\n' "$@" 'see --help' >&2
  exit 2
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
        [ $# -ge 2 ] || misused "$1 needs a value"
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
      *) misused "unknown option $1" ;;
    esac
    shift
  done
  base=${base%/}
  case $base in
    https://?*) ;;
    *) is_loopback "$base" || misused "the release site $base must use https" ;;
  esac
  case $kind in
    bundle | source) ;;
    standalone) fail 'a standalone build is one program, which this script does not manage' \
      "take it from $base/releases/, or install the bundle" ;;
    *) misused "unknown kind $kind: bundle or source" ;;
  esac
  [ -n "${HOME:-}" ] || [ -n "${WAFT_HOME:-}" ] || fail 'neither HOME nor WAFT_HOME is set'
  if [ -n "$uninstall" ]; then
    remove
    return
  fi
  case $RELEASE_VERSION in
    '') [ "$kind" = source ] || fail 'this copy of the script is not part of a release' "take $base/install.sh, or use --from-source in a checkout" ;;
  esac
  if [ "$(id -u)" = 0 ] && [ -z "${WAFT_HOME:-}" ]; then
    say "install.sh: warning: this is root; waft goes to root's home directory, other users will not have it"
  fi
  platform
  need_tools
  umask 022
  work=$(mktemp -d "${TMPDIR:-/tmp}/waft-install.XXXXXX") || fail "cannot create a temporary directory in ${TMPDIR:-/tmp}"
  trap 'rm -rf "$work"' EXIT
  trap 'exit 129' HUP
  trap 'exit 130' INT
  trap 'exit 143' TERM
  if [ "$kind" = bundle ]; then get_bundle; else get_source; fi
  run_setup
  other_version
}

# Sets os, arch and platform; rejects platforms without a bundle before any download.
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
  # A shell under Rosetta reports x86_64 on an arm64 machine.
  if [ $os = darwin ] && [ $arch = amd64 ] && [ "$(sysctl -n sysctl.proc_translated 2>/dev/null || echo 0)" = 1 ]; then
    arch=arm64
  fi
  if [ $os = linux ] && [ "$(getconf LONG_BIT 2>/dev/null || echo 64)" = 32 ]; then
    fail 'this is a 32-bit system on a 64-bit processor' 'waft needs a 64-bit system'
  fi
  platform=$os/$arch
  [ $os = linux ] || say 'note: waft has not been run by its authors on macOS; it tests itself before the first module runs'
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
  else fail 'neither curl nor wget is installed' 'install one of them and run this script again'; fi
  if has sha256sum; then hasher=sha256sum
  elif has shasum; then hasher=shasum
  elif has openssl; then hasher=openssl
  else fail 'none of sha256sum, shasum and openssl is installed' 'one of them is needed to verify downloads'; fi
  for tool in tar gzip mktemp; do
    has $tool || fail "$tool is not installed" 'install it and run this script again'
  done
}

# is_loopback URL: plain http to this machine itself, and no other spelling of an address
is_loopback() {
  case $1 in http://*) ;; *) return 1 ;; esac
  authority=${1#http://}
  authority=${authority%%/*}
  case $authority in
    127.0.0.1 | localhost | '[::1]') return 0 ;;
    127.0.0.1:* | localhost:* | '[::1]:'*) ;;
    *) return 1 ;;
  esac
  # All that follows the host: a user name could stand in front of another host with a port.
  port=${authority#'[::1]'}
  port=${port#*:}
  case $port in '' | *[!0-9]*) return 1 ;; esac
}

# fetch URL FILE
fetch() {
  if [ $fetcher = curl ]; then
    quiet=--silent
    [ ! -t 2 ] || quiet=--progress-bar
    # Never leave https.
    case $1 in https://*) schemes='=https' ;; *) schemes='=https,http' ;; esac
    curl --fail --show-error $quiet --location --max-redirs 3 --proto "$schemes" --proto-redir "$schemes" --connect-timeout 20 \
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
  fail "$3 does not match the release" "its SHA-256 is $found" "expected        $2" 'nothing was changed'
}

# Succeeds if openssl can verify Ed25519. Older versions and LibreSSL, which macOS ships, cannot.
can_verify() {
  openssl_version=''
  has openssl || return 1
  openssl_version=$(openssl version 2>/dev/null) || return 1
  case $openssl_version in
    'OpenSSL '[3-9].* | 'OpenSSL '[1-9][0-9]*.*) return 0 ;;
  esac
  return 1
}

# verify FILE KEY SIGNATURE: succeeds if SIGNATURE (base64) over FILE is by KEY (its 32 bytes in base64).
verify() {
  # The prefix of the key identifies it as an Ed25519 key (RFC 8410).
  printf '%s\n' '-----BEGIN PUBLIC KEY-----' "MCowBQYDK2VwAyEA$2" '-----END PUBLIC KEY-----' >"$work/key.pem"
  printf '%s\n' "$3" | openssl base64 -d -A >"$work/signature" 2>/dev/null || return 1
  openssl pkeyutl -verify -pubin -inkey "$work/key.pem" -rawin -in "$1" -sigfile "$work/signature" >/dev/null 2>&1
}

# Sets signer: the key of this release that signed FILE. Each line of FILE.sig holds a key's name and its signature.
find_signer() {
  signer='' rest=${RELEASE_KEYS#*'['}
  while [ -z "$signer" ]; do
    case $rest in *'"'*'"'*) ;; *) return 1 ;; esac
    rest=${rest#*'"'}
    key=${rest%%'"'*}
    rest=${rest#*'"'}
    while read -r _ value; do
      if verify "$1" "$key" "$value"; then signer=$key; fi
    done <"$1.sig"
  done
}

# signed NAME SHA256: checks that the release's signed list of checksums agrees with this script; reports the checks
# that were made and those that were not.
signed() {
  if ! can_verify; then
    say "checked: the SHA-256 that this script has for $1"
    say "not checked: the release's signature, which needs OpenSSL 3 or newer (here: ${openssl_version:-none})"
    return 0
  fi
  sums=$base/releases/$RELEASE_VERSION/SHA256SUMS
  fetch "$sums" "$work/SHA256SUMS"
  fetch "$sums.sig" "$work/SHA256SUMS.sig"
  find_signer "$work/SHA256SUMS" ||
    fail "$sums is signed by no key of release $RELEASE_VERSION" 'do not trust the site or the network; nothing was changed'
  listed=''
  while read -r listed_digest listed_name; do
    [ "$listed_name" != "$1" ] || listed=$listed_digest
  done <"$work/SHA256SUMS"
  [ "$listed" = "$2" ] ||
    fail "the SHA-256 of $1 differs between the signed list and this script" "list: ${listed:-none}" "script: $2" 'nothing was changed'
  say "checked: the SHA-256 of $1, and that the release's key $signer signed it"
}

get_bundle() {
  name=waft-$RELEASE_VERSION-$os-$arch.tar.gz
  url=$base/releases/$RELEASE_VERSION/$name
  say "downloading $url"
  fetch "$url" "$work/bundle.tar.gz"
  check "$work/bundle.tar.gz" "$expected" "$url"
  signed "$name" "$expected"
  archive_digest=$expected
  unpack "$work/bundle.tar.gz"
  bundle=$work/waft-$RELEASE_VERSION
  chmod 755 "$bundle/deno" "$bundle/waft"
}

unpack() {
  (cd "$work" && gzip -dc "$1" | tar -xf -) || fail "the archive cannot be unpacked: is there room in ${TMPDIR:-/tmp}?" 'nothing was changed'
}

# Succeeds if version $1 is at least version $2.
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
  checkout=$(dirname -- "$0")/..
  if [ -z "$RELEASE_VERSION" ] && [ -f "$0" ] && [ -f "$checkout/scripts/package/release.ts" ]; then
    # Build a copy, since building writes into the tree.
    say "taking the sources of $(CDPATH='' cd -- "$checkout" && pwd)"
    mkdir "$source"
    (cd "$checkout" && tar --exclude=./.git --exclude=./node_modules --exclude=./dist -cf - .) | tar -xf - -C "$source" ||
      fail 'the sources cannot be copied' 'nothing was changed'
  elif [ -n "$RELEASE_REPOSITORY" ] && has git; then
    say "cloning $RELEASE_REPOSITORY"
    { git init -q "$source" &&
      git -C "$source" fetch -q --depth 1 "$RELEASE_REPOSITORY" "$RELEASE_COMMIT" &&
      git -C "$source" -c advice.detachedHead=false checkout -q FETCH_HEAD; } ||
      fail "$RELEASE_REPOSITORY cannot be cloned" 'nothing was changed'
    [ "$(git -C "$source" rev-parse HEAD)" = "$RELEASE_COMMIT" ] ||
      fail "the clone is not at the commit of release $RELEASE_VERSION" 'nothing was changed'
    say "checked: the clone is at commit $RELEASE_COMMIT, which this script names"
  else
    [ -n "$RELEASE_SOURCE_SHA256" ] || fail 'this copy of the script is neither part of a release nor in a checkout, so it has no sources' \
      "take $base/install.sh"
    name=waft-$RELEASE_VERSION-source.tar.gz
    url=$base/releases/$RELEASE_VERSION/$name
    say "downloading $url"
    fetch "$url" "$work/source.tar.gz"
    check "$work/source.tar.gz" "$RELEASE_SOURCE_SHA256" "$url"
    signed "$name" "$RELEASE_SOURCE_SHA256"
    unpack "$work/source.tar.gz"
    mv "$work/waft-$RELEASE_VERSION" "$source"
  fi
  [ -z "$RELEASE_KEYS" ] || printf '%s\n' "$RELEASE_KEYS" >"$work/keys.json"
  say 'building'
  (cd "$source" && deno run -A scripts/package/release.ts --here "$work/built" --version "$RELEASE_VERSION" --keys "$work/keys.json" >&2) ||
    fail 'the build failed (see above)' 'nothing was changed'
  bundle=$work/built
  archive_digest=$RELEASE_SOURCE_SHA256
}

# Lets the unpacked waft install itself; it asks open questions on the terminal.
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

# Any version but the script's own comes from the release index.
other_version() {
  case $target in '' | "$RELEASE_VERSION" | "v$RELEASE_VERSION") return 0 ;; esac
  [ -z "$dry" ] || return 0
  "$bundle/waft" version install "$target" --use --base "$base" || fail "$target was not installed; $RELEASE_VERSION is active"
}

remove() {
  receipt=''
  for state in "${WAFT_HOME:+$WAFT_HOME/state}" "${XDG_STATE_HOME:+$XDG_STATE_HOME/waft}" "${HOME:+$HOME/.local/state/waft}" "${HOME:+$HOME/.waft/state}"; do
    if [ -z "$receipt" ] && [ -n "$state" ] && [ -f "$state/install-receipt.json" ]; then receipt=$state/install-receipt.json; fi
  done
  recorded=''
  [ -z "$receipt" ] || recorded=$(sed -n 's/^  "bin": "\(.*\)",$/\1/p' "$receipt")
  for candidate in "$dir" "$recorded" "${WAFT_HOME:+$WAFT_HOME/bin}" "${HOME:+$HOME/.waft/bin}"; do
    if [ -n "$candidate" ] && [ -x "$candidate/waft" ]; then
      [ -z "$dry" ] || { "$candidate/waft" self uninstall --dry-run; return; }
      if [ -n "$yes" ]; then "$candidate/waft" self uninstall --yes </dev/null
      elif terminal; then "$candidate/waft" self uninstall </dev/tty
      else fail 'nothing was removed: give --yes, or run it in a terminal'; fi
      return
    fi
  done
  [ -z "$receipt" ] || fail "waft's command is missing, but other files remain ($receipt)" \
    'an uninstallation was interrupted: run this script to install waft once more, then again with --uninstall'
  fail 'waft is not installed here' 'give the directory of the command with --dir'
}

main "$@"
