#!/bin/sh
# Installs the compilers from npm that these tests run into a folder: tests/toolchains/install.sh FOLDER, then
# WASM_TOOLCHAINS=FOLDER deno task test; `deno task test:toolchains` does both. In addition, the C++ test needs Debian's
# clang, lld, wasi-libc, libc++-dev-wasm32 and libclang-rt-dev-wasm32, Rust needs rustc and libstd-rust-dev-wasm32, Go
# needs go, and Java, Kotlin and Scala need a JDK, Maven and unzip: their compilers come from Maven Central when the
# tests run.
set -eu
npm install --no-audit --no-fund --prefix "$1" assemblyscript@0.28.20 porffor@0.61.13 \
  @moonbit/moonc-worker@0.1.202605123 @micropython/micropython-webassembly-pyscript@1.27.0 \
  @bytecodealliance/jco@1.35.0 @bytecodealliance/componentize-js@0.22.0
# Zig's compiler and componentize-py, for pages of the documentation, come from PyPI.
[ -x "$1/python/bin/python" ] || python3 -m venv "$1/python"
"$1/python/bin/pip" install --quiet ziglang==0.17.1 componentize-py==0.25.1
