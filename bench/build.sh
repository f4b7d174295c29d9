#!/bin/sh
# Builds the benchmark programs into bench/wasm/. Needs clang and lld with wasi-libc (Debian: clang lld wasi-libc
# libclang-rt-14-dev-wasm32), npx (AssemblyScript) and Deno (the text format). The results are checked in, so that
# running the benchmark needs none of these.
set -eu
cd "$(dirname "$0")"
mkdir -p wasm
for source in programs/*.c; do
  name=$(basename "$source" .c)
  case "$name" in simd_*) more=-msimd128 ;; tail_*) more=-mtail-call ;; *) more=-mno-simd128 ;; esac
  case "$name" in memory64_*) target="wasm64 -nostdlib" libraries= ;; *) target=wasm32-wasi libraries=-lm ;; esac
  clang --target=$target -O2 -std=c11 -Wall -mbulk-memory -msign-ext -mnontrapping-fptoint $more \
    -nostartfiles -Wl,--no-entry -Wl,--gc-sections -Wl,--strip-all -Wl,-z,stack-size=65536 \
    -o "wasm/$name.wasm" "$source" $libraries
done
for source in programs/*.cpp; do
  name=$(basename "$source" .cpp)
  clang++ --target=wasm32 -O2 -std=c++17 -Wall -fwasm-exceptions -fno-rtti -mbulk-memory -msign-ext -nostdlib \
    -nostartfiles -ffreestanding \
    -Wl,--no-entry -Wl,--gc-sections -Wl,--strip-all -Wl,-z,stack-size=65536 -o "wasm/$name.wasm" "$source"
done
for source in programs/*.wat; do
  deno run -A ../cli.ts parse "$source" -o "wasm/$(basename "$source" .wat).wasm"
done
for source in programs/*.ts; do
  npx -y -p assemblyscript@0.28.20 asc "$source" -O3 --runtime stub --use abort= \
    --outFile "wasm/$(basename "$source" .ts).wasm"
done
ls -l wasm
