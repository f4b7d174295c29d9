#!/usr/bin/env bash
# Builds the programs of the debugger's tests, not optimized: with clang and lld, DWARF 4 and 5; with rustc; with
# AssemblyScript, a source map.
set -euo pipefail
cd "$(dirname "$0")"
for version in 4 5; do
  clang --target=wasm32 "-gdwarf-$version" -O0 -nostdlib -Wl,--no-entry -fdebug-prefix-map="$PWD"=/src \
    -fdebug-compilation-dir=/src shapes.c -o "shapes$version.wasm"
done
deno run -A npm:assemblyscript@0.28.20/asc sums.ts --outFile sums.wasm --sourceMap --debug --runtime stub --use abort=
rustc --target wasm32-unknown-unknown -g -C opt-level=0 -C panic=abort -C overflow-checks=off --crate-type lib \
  --remap-path-prefix "$PWD"=/src --emit obj values.rs -o values.o
wasm-ld --no-entry --export=run values.o -o values.wasm
rm values.o
