/**
 * Refuses calls of the system, one after the other, while the engine works (fault_scenarios.ts). Arguments: a folder
 * for files, `once` or `onward`, and the names of scenarios, or `all`. Out: one line of JSON per scenario.
 *
 * Cold: each call of the system from a place in the code that has not been refused yet is refused, repeatedly, until
 * the scenario passes with none refused; calls that give something back are not. Warm: the n-th call is refused, for
 * each n. `onward`: all later calls are refused, too, apart from those that give something back.
 *
 * A refused call must end in an error that names it, or the scenario passes by a fallback; a repetition takes nothing
 * more from the system, and without refusals the scenario passes afterwards.
 */
import assert from "node:assert/strict";
import process from "node:process";
import { currentHost } from "../../engine/host/current.ts";
import { SystemError } from "../../engine/host/calls/system_error.ts";
import { TrapError } from "../../engine/base/errors.ts";
import { realmStore } from "../../engine/runtime/realm_store.ts";
import { settle } from "../support/collect_garbage.ts";
import { FaultyFfi, NOT_OPENED, REFUSED_ERRNOS } from "./faulty_ffi.ts";
import { type Scenario, scenarios } from "./fault_scenarios.ts";

// Places of calls are told apart by their stacks.
Error.stackTraceLimit = 60;

const [folder, mode, only] = process.argv.slice(-3);
/** Calls that give something back. */
const RETURNING: ReadonlySet<string> = new Set([
  "munmap",
  "madvise",
  "mmap of nothing",
  "mprotect of nothing",
  "sigaction of an earlier handler",
]);
/** Attempts per refused call, after one of which the ledger must be as it was after another. */
const ATTEMPTS = 8;

/** The refusals of a scenario. */
interface Row {
  readonly scenario: string;
  cold: number;
  warm: number;
  errors: number;
  fallbacks: number;
  /** Refusals by call. */
  readonly calls: Record<string, number>;
}

let ffi: FaultyFfi | undefined;
currentHost((own) => ffi = new FaultyFfi(own));
const faulty = ffi!;

/** Runs `work` while `refuses` decides; returns the call that was refused first, and the error. */
async function attempt(work: Scenario["work"], refuses: (call: string) => boolean) {
  let refused: string | undefined;
  faulty.refuses = (call) => {
    const isRefused = refuses(call) || (refused !== undefined && mode === "onward" && !RETURNING.has(call));
    if (isRefused) refused ??= call;
    return isRefused;
  };
  let error: unknown;
  try {
    await work();
  } catch (thrown) {
    error = thrown;
  }
  faulty.refuses = () => false;
  if (refused === undefined && error !== undefined) throw error;
  if (error !== undefined) requireClear(error);
  return { refused, error };
}

/** The error names a call and its error number, is a trap, or is the runtime's about a library. */
function requireClear(error: unknown): void {
  if (error instanceof SystemError) {
    assert.match(error.message, /\([a-z_]+ failed/);
    if (error.call !== "dlopen") assert.ok(REFUSED_ERRNOS.has(error.errno), `unknown error number: ${error.stack}`);
    return;
  }
  const { message, stack } = error as Error;
  const isClear = error instanceof TrapError ? /out of memory/.test(message) : message.includes(NOT_OPENED);
  assert.ok(isClear, `an unclear error: ${stack}`);
}

/** Chunks that are taken at once and given back, more than a scenario uses: a lost one makes the next end later. */
const PROBES = 64;
const CONTEXT_SIZES = [64, 128, 256, 512, 1024, 2048, 4096];

/** The ledger, and the ends of the chunks of executable memory and of contexts that can be taken now. */
async function taken(before: string): Promise<string> {
  const now = faulty.taken + chunks();
  if (now === before) return now;
  await settle(); // garbage may hold some
  return faulty.taken + chunks();
}

function chunks(): string {
  if (!isStarted) return "";
  const { thread: { arena, contexts } } = realmStore();
  const pages = Array.from({ length: PROBES }, () => arena.allocate(1));
  for (const at of pages) arena.release(at, 1);
  const blocks = CONTEXT_SIZES.flatMap((bytes) => Array.from({ length: PROBES }, () => contexts.allocate(bytes)));
  for (const block of blocks) contexts.release(block);
  const last = Math.max(...blocks.map(({ address }) => address));
  return `, code up to ${Math.max(...pages).toString(16)}, contexts up to ${last.toString(16)}`;
}

let isStarted = false;

async function run(scenario: string, { work, keeps = false }: Scenario): Promise<Row> {
  const row: Row = { scenario, cold: 0, warm: 0, errors: 0, fallbacks: 0, calls: {} };
  const count = ({ refused, error }: Awaited<ReturnType<typeof attempt>>) => {
    row.calls[refused!] = (row.calls[refused!] ?? 0) + 1;
    if (error === undefined) row.fallbacks++;
    else row.errors++;
  };
  const seen = new Set<string>();
  for (;;) {
    const places = new Set<string>();
    const isNew = (call: string) => {
      if (RETURNING.has(call)) return false;
      const from = `${call} ${new Error().stack}`;
      if (!seen.has(from)) places.add(from);
      return places.has(from);
    };
    const outcome = await attempt(work, isNew);
    if (outcome.refused === undefined) break;
    await repeat(work, isNew, `${scenario}, cold, ${[...places].join()}`, keeps);
    for (const place of places) seen.add(place);
    row.cold += places.size;
    count(outcome);
  }
  isStarted = true;
  for (let n = 1;; n++) {
    let left = 0;
    const nth = () => --left === 0;
    const again = () => {
      left = n;
      return work();
    };
    const outcome = await attempt(again, nth);
    if (outcome.refused === undefined) break;
    row.warm++;
    count(outcome);
    await attempt(work, () => false);
    await repeat(again, nth, `${scenario}, warm, call ${n}: ${outcome.refused}`, keeps);
    await attempt(work, () => false);
  }
  return row;
}

/**
 * Repeats a refusal until the ledger is as it was after an earlier one: pools make it swing, a loss makes it grow. A
 * scenario that keeps its results may not succeed by a fallback.
 */
async function repeat(work: Scenario["work"], refuses: (call: string) => boolean, place: string, keeps: boolean) {
  const ledgers = new Set<string>();
  let last = "";
  for (let k = 0; k < ATTEMPTS; k++) {
    const { refused, error } = await attempt(work, refuses);
    if (refused === undefined) return; // the first attempt made the call unnecessary
    if (error === undefined && keeps) return;
    last = await taken(last);
    if (ledgers.has(last)) return;
    ledgers.add(last);
  }
  assert.fail(`something is lost each time: ${place}: ${[...ledgers].join("; ")}`);
}

for (const [scenario, steps] of Object.entries(scenarios(folder))) {
  if (only === "all" || only.split(",").includes(scenario)) console.log(JSON.stringify(await run(scenario, steps)));
}
