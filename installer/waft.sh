#!/bin/sh
# Starts the version of waft in this script's directory, regardless of the active version.
waft_dir=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd -P) || exit 1
# shellcheck source=/dev/null
. "$waft_dir/start"
