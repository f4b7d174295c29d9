/**
 * Prints as JSON the machine code that waft runs on macOS, for emulate.py: process stubs, the watchdog, the call of C
 * functions, and the code in front of entry points that bsearch calls, with the offsets and layouts that it needs.
 */
import { buildProcessStubs as arm64Stubs } from "../../engine/backend_arm64/process_stubs.ts";
import { buildProcessStubs as x64Stubs } from "../../engine/backend_x64/process_stubs.ts";
import { CONTEXT, FAULT_WORDS, OLD_HANDLERS, STATUS, THREAD } from "../../engine/abi/context_layout.ts";
import { toHex } from "../../engine/base/hex.ts";
import { BLOCK_FLOATS, bsearchEntry } from "../../engine/host/code/bsearch_entry.ts";
import { fromBase64 } from "../../engine/base/base64.ts";
import { DARWIN_WATCH, WATCHDOG_FUNCTIONS } from "../../engine/host/code/darwin_watchdog.ts";
import { BLOCK_COMPARISON, BOUND_COMPARISON, C_CALL } from "../../engine/host/code/generated_code.ts";
import { DARWIN_WATCHDOG } from "../../engine/host/code/generated_darwin_code.ts";
import type { Ffi } from "../../engine/host/runtimes/ffi.ts";
import { SYSTEMS } from "../../engine/host/systems/systems.ts";
import { WATCH } from "../../engine/host/code/watchdog.ts";
import { NATIVE_SLACK_BYTES } from "../../engine/tiers/native_thread.ts";

type Arch = "x64" | "arm64";

/** The offset of a library without code, so that only the code in front of its entry points is emulated. */
const TARGET = 0;

/**
 * The code that bsearch would call: a comparison for a bound call, and one for a function of many parameters. `floats`:
 * the offset of the first float in the block; `codeBytes`: of the comparisons without data, and without Windows' shell.
 */
function entries(arch: Arch) {
  const placed: Uint8Array[] = [];
  const searched: bigint[] = [];
  const ffi = {
    arch,
    system: SYSTEMS.darwin,
    open: () => ({
      bsearch: (_key: bigint, _base: bigint, _count: bigint, _width: bigint, code: bigint) => searched.push(code),
    }),
  } as unknown as Ffi;
  const memory = {
    allocate: () => 0x1000,
    placeCode: (text: Uint8Array) => {
      placed.push(text);
      return 0;
    },
    view: (_address: number, bytes: number) => new ArrayBuffer(bytes),
  };
  const entry = bsearchEntry(ffi, "", memory);
  const target = arch === "x64" ? Uint8Array.of(0xcc, 0xc3) : Uint8Array.of(0, 0, 0x20, 0xd4, 0xc0, 3, 0x5f, 0xd6);
  const { bound } = entry.boundCalls(target, { bound: TARGET }, 0x2000);
  bound();
  const params = ["i64", "f64", "i64", "i32", "f32", "i64"] as const;
  const { block } = entry.nativeLibrary(target, { block: { offset: TARGET, params, result: "i64" } });
  block(1n, 2, 3n, 4, 5, 6n);
  const codeBytes = [BOUND_COMPARISON, BLOCK_COMPARISON].map(({ x64, arm64 }) =>
    arch === "x64" ? x64.labels.win64 : arm64.labels.distance
  );
  return {
    text: placed.map((text) => toHex(text)).join("|"),
    bound: Number(searched[0]),
    block: Number(searched[1]),
    floats: 8 * BLOCK_FLOATS,
    codeBytes,
  };
}

const machines = Object.fromEntries((["x64", "arm64"] as const).map((arch) => {
  const { bytes, ...offsets } = (arch === "x64" ? x64Stubs : arm64Stubs)("darwin");
  const { code: watchdog, labels: { arm, disarm } } = DARWIN_WATCHDOG[arch];
  return [arch, {
    stubs: { ...offsets, bytes: toHex(bytes) },
    watchdog: { bytes: toHex(fromBase64(watchdog)), arm, disarm },
    call: toHex(fromBase64(C_CALL[arch].code)),
    entries: entries(arch),
  }];
}));
const layouts = {
  CONTEXT,
  FAULT_WORDS,
  OLD_HANDLERS,
  STATUS,
  THREAD,
  WATCH,
  DARWIN_WATCH,
  WATCHDOG_FUNCTIONS,
  NATIVE_SLACK_BYTES,
};
const { SIGSEGV, SIGBUS } = SYSTEMS.darwin;
console.log(JSON.stringify({ machines, layouts, signals: { SIGSEGV, SIGBUS } }));
