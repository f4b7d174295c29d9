#!/bin/sh
# Puts the compilers from npm that these tests run into a folder: tests/toolchains/install.sh FOLDER, then WASM_TOOLCHAINS=FOLDER deno task test.
# The C++ test needs Debian's clang, lld, wasi-libc, libc++-dev-wasm32 and libclang-rt-dev-wasm32 besides.
set -eu
npm install --no-audit --no-fund --prefix "$1" assemblyscript@0.28.20 porffor@0.61.13 @moonbit/moonc-worker@0.1.202605123
