#!/bin/sh
# Builds the example plugins and the guest that uses them. Needs waft, clang and wasm-ld (Debian: clang lld). The results are
# checked in.
set -eu
cd "$(dirname "$0")"
build() {
  clang --target=wasm32 -nostdlib -ffreestanding -fno-builtin -Os -std=gnu11 -Wall -Wextra \
    -Wl,--no-entry -Wl,--strip-all -Wl,-z,stack-size=16384 -o "$2" "$1"
}
for plugin in kv log http; do
  build "$plugin/$plugin.c" "$plugin/dist/$plugin.wasm"
done
waft component new log_component/log.wat --wit log_component/log.wit -o log_component/dist/log.wasm
build ../app/visits.c ../app/visits.wasm
