/**
 * Feature gates: the features that a module may use (the caller's switches) and those that it uses, with the first
 * offset.
 *
 * Establishes: after successful validation, `used` names exactly the features that the module requires, each with the
 * smallest offset of a use; the use of a disabled feature is an UnsupportedError at that offset. `firstUse` reduces the
 * check to one comparison in hot loops: `if (at < firstUse[feature]) gate.use(…)`.
 */
import { UnsupportedError } from "../base/errors.ts";
import { ALL_FEATURE_ROWS, type FeatureName, type FeatureSet } from "../settings/features.ts";
import { isExact } from "../wasm/exact_heap.ts";
import { exactHeapOf, EXNREF, EXTERNREF, FUNCREF, HEAP, isNullable, isRef, V128, type ValType } from "../wasm/types.ts";

/** Number of each feature: its index in ALL_FEATURE_ROWS plus 1; 0 means WebAssembly 1.0. */
export const FEATURE: Readonly<Record<FeatureName, number>> = Object.fromEntries(
  ALL_FEATURE_ROWS.map((row, index) => [row.name, index + 1]),
) as Record<FeatureName, number>;

/** Number of a row's feature. */
export function featureNumber(name: FeatureName | "mvp"): number {
  return name === "mvp" ? 0 : FEATURE[name];
}

/** Value in `firstUse` of an unused feature. */
const UNUSED = 0x7fffffff;

export class FeatureGate {
  /** By feature number: the smallest offset of a use so far. */
  readonly firstUse: Int32Array;
  /** The same by name, for features in use. */
  readonly used: Map<FeatureName, number> = new Map();
  readonly #on: FeatureSet;

  constructor(on: FeatureSet) {
    this.#on = on;
    this.firstUse = new Int32Array(ALL_FEATURE_ROWS.length + 1).fill(UNUSED);
    this.firstUse[0] = -1;
  }

  /** Whether a use at `offset` would be the first; `use` must then be called. */
  isFirst(feature: number, offset: number): boolean {
    return offset < this.firstUse[feature];
  }

  /** Whether the feature is switched on. */
  allows(feature: number): boolean {
    return this.#on[ALL_FEATURE_ROWS[feature - 1].name];
  }

  /** Whether there has been no use. */
  isUnused(feature: number): boolean {
    return this.firstUse[feature] === UNUSED;
  }

  /** Records a use of `feature` by `what` at `offset`, or rejects it. */
  use(feature: number, offset: number, what: string): void {
    if (offset >= this.firstUse[feature]) return;
    const name = ALL_FEATURE_ROWS[feature - 1].name;
    if (!this.#on[name]) {
      throw new UnsupportedError(name, `${what} needs the feature ${name}, which is switched off`, { offset });
    }
    this.firstUse[feature] = offset;
    this.used.set(name, offset);
  }
}

const REFERENCE_TYPES = FEATURE["reference-types"];
const TYPED_REFERENCES = FEATURE["typed-function-references"];
const EXCEPTIONS = FEATURE["exception-handling"];
const GC = FEATURE["gc"];
const SIMD = FEATURE["simd"];
const STACK_SWITCHING = FEATURE["stack-switching"];
const DESCRIPTORS = FEATURE["custom-descriptors"];

/**
 * Number of the feature that introduced value type `type`. Concrete types count as function references: other kinds
 * need gc by their declaration.
 */
export function featureOfType(type: ValType): number {
  if (!isRef(type)) return type === V128 ? SIMD : 0;
  if (type === FUNCREF || type === EXTERNREF) return REFERENCE_TYPES;
  if (type === EXNREF) return EXCEPTIONS;
  const heap = exactHeapOf(type);
  if (isExact(heap)) return DESCRIPTORS;
  if (heap >= 0) return TYPED_REFERENCES;
  if (heap === HEAP.exn || heap === HEAP.noexn) return EXCEPTIONS;
  if (heap === HEAP.cont || heap === HEAP.nocont) return STACK_SWITCHING;
  const isOld = heap === HEAP.func || heap === HEAP.extern;
  return isOld && !isNullable(type) ? TYPED_REFERENCES : GC;
}
