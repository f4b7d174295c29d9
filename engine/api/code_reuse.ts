/**
 * Sharing of compiled code between the modules of one realm. In: the bytes of a module, and everything else that
 * decides its code. Out: the code that was compiled from equal bytes with equal settings, while something uses it.
 *
 * Invariants: bytes are compared with a copy that no program can change, so code never belongs to other bytes; the cost
 * of a look-up does not grow with the number of modules that are alive, however similar they are.
 */
import type { CompiledModule } from "../runtime/code/compiled_module.ts";
import type { TierUp } from "../tiers/tier_up.ts";

/** Compiled code, the optimizations that were counted, and the replacement of baseline code if it is planned. */
export interface ReusableCode {
  readonly compiled: CompiledModule;
  readonly statistics: Readonly<Record<string, number>>;
  readonly tierUp: TierUp | undefined;
}

interface Entry {
  readonly bytes: Uint8Array;
  readonly code: WeakRef<ReusableCode["compiled"]>;
  readonly statistics: ReusableCode["statistics"];
}

/** Number of bytes that a key is computed from. All bytes are compared afterwards. */
const SAMPLES = 64;

/** Most entries of one key: modules with equal samples evict each other. */
const MAX_ENTRIES = 4;

/**
 * Apart from the entries, because a tier-up refers to its module: an entry that held it would keep the module alive.
 */
const TIER_UPS = new WeakMap<CompiledModule, TierUp>();
const ENTRIES = new Map<string, Entry[]>();
const GONE = new FinalizationRegistry<string>((key) => {
  const left = (ENTRIES.get(key) ?? []).filter(({ code }) => code.deref() !== undefined);
  if (left.length === 0) ENTRIES.delete(key);
  else ENTRIES.set(key, left);
});

/** A key that equal bytes with equal settings share. */
function keyOf(bytes: Uint8Array, settings: string): string {
  let hash = bytes.length;
  const step = Math.max(1, Math.floor(bytes.length / SAMPLES));
  for (let k = 0; k < bytes.length; k += step) hash = Math.imul(hash, 31) + bytes[k] | 0;
  return `${hash} ${bytes.length} ${settings}`;
}

function equal(a: Uint8Array, b: Uint8Array): boolean {
  if (a.length !== b.length) return false;
  for (let k = 0; k < a.length; k++) if (a[k] !== b[k]) return false;
  return true;
}

/** The code of `bytes` under `settings`, if a module uses it. */
export function reusableCode(bytes: Uint8Array, settings: string): ReusableCode | undefined {
  for (const { bytes: known, code, statistics } of ENTRIES.get(keyOf(bytes, settings)) ?? []) {
    const compiled = code.deref();
    if (compiled !== undefined && equal(known, bytes)) {
      return { compiled, statistics, tierUp: TIER_UPS.get(compiled) };
    }
  }
  return undefined;
}

/** Offers this code to later modules with the same bytes and settings. No program may be able to change `bytes`. */
export function rememberCode(
  bytes: Uint8Array,
  settings: string,
  { compiled, statistics, tierUp }: ReusableCode,
): void {
  if (tierUp !== undefined) TIER_UPS.set(compiled, tierUp);
  const key = keyOf(bytes, settings);
  const entry: Entry = { bytes, code: new WeakRef(compiled), statistics };
  ENTRIES.set(key, [...ENTRIES.get(key) ?? [], entry].slice(-MAX_ENTRIES));
  GONE.register(compiled, key);
}
