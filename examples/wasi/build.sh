#!/bin/sh
# Builds the WASI examples beside their sources. Needs clang and lld with wasi-libc (Debian: clang lld wasi-libc
# libclang-rt-14-dev-wasm32) and npx (AssemblyScript). The results are checked in.
set -eu
cd "$(dirname "$0")"
for source in [!t]*.c; do
  clang --target=wasm32-wasi -Os -std=gnu11 -Wall -msign-ext -mnontrapping-fptoint -Wl,--strip-all \
    -o "${source%.c}.wasm" "$source"
done
npx -y -p assemblyscript@0.28.20 asc words.ts -O3 --runtime incremental --use abort= --outFile words.wasm
# Debian's wasi-libc does not support threads, so this program uses no libc.
clang --target=wasm32-unknown-unknown -Os -Wall -nostdlib -ffreestanding -matomics -mbulk-memory \
  -Wl,--shared-memory,--import-memory,--max-memory=1048576,--no-entry,--strip-all -o threads.wasm threads.c
