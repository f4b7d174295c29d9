/**
 * The entries of a thread into machine code, and its fault handlers. In: the process code of a target, an arena for it,
 * and the thread state. Out: functions that enter and resume guest code, and the addresses of stubs. Invariant: if the
 * handlers cannot be installed, the previous ones are in place again.
 */
import { FAULT_WORDS, OLD_HANDLERS, THREAD } from "../../abi/context_layout.ts";
import type { ProcessStubs, Target } from "../../codegen/target.ts";
import { WATCH, type WatchdogCalls, watchdogCode } from "../../host/code/watchdog.ts";
import { noteProbe, probeCode } from "../../host/cpu.ts";
import { type Host, PROT } from "../../host/host.ts";
import type { CacheMaintenance, CodeArena } from "../../host/memory/code_arena.ts";
import { NativeRegion } from "../memory/native_region.ts";

/** Offset of the previous handlers of the fault signals, after the thread state. */
const HANDLERS = THREAD.SIZE;
/** Offset of the watchdog's state, after those. */
const WATCHDOG = Math.ceil((HANDLERS + OLD_HANDLERS.SIZE) / 16) * 16;

/** The machine code that each process needs once; made by a backend and stored in artifacts. */
export interface ProcessCode {
  readonly stubs: ProcessStubs;
  /** Code of Target.cacheMaintenance, if the target needs it. */
  readonly maintenance: Uint8Array | undefined;
}

/** The process code of a target for an operating system. */
export function processCodeOf(target: Target, os: string): ProcessCode {
  return { stubs: target.processStubs(os), maintenance: target.cacheMaintenance?.() };
}

/** The host's cache maintenance, or that of the target as a function; undefined if neither exists. */
export function cacheMaintenance(host: Host, text: Uint8Array | undefined): CacheMaintenance | undefined {
  if (host.invalidateInstructions !== undefined) return host.invalidateInstructions;
  if (text === undefined) return undefined;
  const { maintain } = host.nativeLibrary(text, { maintain: { offset: 0, params: ["i64", "i64"], result: "void" } });
  return (first, end) => void maintain(BigInt(first), BigInt(end));
}

/** Pieces of code one behind the other, with the start of each after the first. */
function joinCode([first, ...rest]: readonly [Uint8Array, ...(Uint8Array | undefined)[]]): {
  text: Uint8Array;
  starts: number[];
} {
  let end = first.length;
  const starts = rest.map((piece) => {
    const start = Math.ceil(end / 16) * 16;
    if (piece !== undefined) end = start + piece.length;
    return start;
  });
  const text = new Uint8Array(end);
  text.set(first);
  rest.forEach((piece, k) => piece && text.set(piece, starts[k]));
  return { text, starts };
}

/** The thread state, followed by the previous fault handlers and the state of the watchdog. */
export function threadState(host: Host): NativeRegion {
  const bytes = Math.ceil((WATCHDOG + WATCH.SIZE) / host.pageSize) * host.pageSize;
  return new NativeRegion(host, host.reserve(bytes, PROT.READ | PROT.WRITE), bytes);
}

/** The entries of a thread. */
interface ProcessEntry {
  /** Begins the call that the CALL_* fields of the thread state describe. */
  readonly call: () => number;
  readonly resume: () => number;
  /** The routines of the watchdog; undefined if the system has none. */
  readonly watchdog: WatchdogCalls | undefined;
  /** Addresses of process stubs. */
  readonly callStub: number;
  readonly trapExit: number;
  readonly tailReturn: number;
}

/** Places the process stubs, opens the entries and installs the fault handlers. */
export function enterProcess(host: Host, stubs: ProcessStubs, arena: CodeArena, state: NativeRegion): ProcessEntry {
  const { system } = host;
  host.ensureSignalStack();
  // Each realm's handler chains to the previous one. Several realms may install handlers at once, so the previous one
  // is known only after the installation.
  const places = new Map([
    [system.SIGSEGV, HANDLERS + OLD_HANDLERS.SEGV],
    [system.SIGBUS, HANDLERS + OLD_HANDLERS.BUS],
    [system.SIGFPE, HANDLERS + OLD_HANDLERS.FPE],
  ]);
  for (const [signal, place] of places) state.setWord(place, host.signalHandler(signal));
  const base = placeStubs(stubs, arena, state);
  const entry = {
    ...openLibrary(host, stubs, state),
    callStub: base + stubs.call,
    trapExit: base + stubs.trapExit,
    tailReturn: base + stubs.tailReturn,
  };
  installHandlers(host, base + stubs.faultHandler, state, places);
  return entry;
}

/**
 * Opens one library for everything that JavaScript calls: the process stubs, the watchdog's routines, and the probe of
 * the processor, which runs at once. A library of their own takes twice as long as the probe and the start of the
 * watchdog.
 */
function openLibrary(
  host: Host,
  { bytes, call, resume }: ProcessStubs,
  { address, u32 }: NativeRegion,
): Pick<ProcessEntry, "call" | "resume" | "watchdog"> {
  const probe = probeCode(host);
  const watchdog = watchdogCode(host);
  const { text, starts: [probeStart, watchdogStart] } = joinCode([bytes, probe, watchdog?.bytes]);
  const routines = watchdog && { arm: watchdogStart + watchdog.arm, disarm: watchdogStart + watchdog.disarm };
  const state = address + WATCHDOG;
  const calls = host.boundCalls<string>(
    text,
    { call, resume, ...routines, ...(probe && { probe: probeStart }) },
    { call: address, resume: address, arm: state, disarm: state, probe: address },
  );
  if (probe !== undefined) {
    calls.probe();
    const results = u32.subarray(THREAD.SLOTS >> 2, (THREAD.SLOTS + THREAD.SLOT_SIZE) >> 2);
    noteProbe(host, results);
    results.fill(0); // test scripts print whole slots
  }
  const words = u32.subarray(WATCHDOG >> 2, (WATCHDOG + WATCH.SIZE) >> 2);
  return {
    call: calls.call,
    resume: calls.resume,
    watchdog: routines && { address: state, state: words, arm: calls.arm, disarm: calls.disarm },
  };
}

/** Installs the fault handler and stores the previous ones at `places`; if that fails, restores them. */
function installHandlers(
  host: Host,
  handler: number,
  state: NativeRegion,
  places: ReadonlyMap<number, number>,
): void {
  const installed = new Map<number, number>();
  try {
    for (const signal of host.system.faultSignals) {
      const old = host.installSignalHandler(signal, handler);
      installed.set(signal, old);
      state.setWord(places.get(signal)!, old);
    }
  } catch (error) {
    for (const [signal, old] of installed) host.installSignalHandler(signal, old);
    throw error;
  }
}

/** Places the process stubs in the arena. Returns their address. */
function placeStubs(stubs: ProcessStubs, arena: CodeArena, state: NativeRegion): number {
  const base = arena.allocate(stubs.bytes.length);
  const bytes = stubs.bytes.slice();
  const view = new DataView(bytes.buffer);
  const put = (offset: number, word: number) => view.setBigUint64(stubs.faultWords + offset, BigInt(word), true);
  put(FAULT_WORDS.START, arena.start);
  put(FAULT_WORDS.END, arena.end);
  put(FAULT_WORDS.LANDING, base + stubs.faultLanding);
  put(FAULT_WORDS.OLD_HANDLERS, state.address + HANDLERS);
  arena.publish(base, bytes);
  return base;
}
