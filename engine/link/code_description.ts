/**
 * The description of a module's machine code: everything that the runtime needs to run it except the bytes, in one type
 * for the compiler's output, artifacts, tokens for other threads and loaded modules.
 */
import type { ContextLayout } from "../abi/context_layout.ts";
import type { NanRule } from "../settings/nans.ts";
import type { StackRule } from "../settings/stack_rules.ts";
import type { CodeTables } from "./image.ts";

/** An inlined call: the site that contains it, where the call was, and the function that was called. */
export interface InlineSite {
  /** Index of the enclosing site in the function's list. */
  parent: number;
  /** Offset of the call instruction in the binary form. */
  callPos: number;
  funcIndex: number;
}

/**
 * Inlined calls by defined function, of functions that have any; the first site of each list is the function itself.
 */
export type InlineSites = ReadonlyMap<number, readonly InlineSite[]>;

/** Assumptions and properties of a module's machine code. */
export interface CodeDescription {
  readonly layout: ContextLayout;
  /** Signature id by function index, imports included: selects thunks. */
  readonly signatureIds: Int32Array;
  /** Explicit bounds checks instead of guard pages. */
  readonly explicitBounds: boolean;
  /** The code polls for deadlines. */
  readonly interruptible: boolean;
  /** The code charges fuel. */
  readonly fuel: boolean;
  /** The code behaves the same on every machine: `nans` and `stack` say how. */
  readonly deterministic: boolean;
  /** The NaNs of deterministic code. */
  readonly nans: NanRule;
  /** How deterministic code limits the depth of calls. */
  readonly stack: StackRule;
  readonly inlineSites: InlineSites;
}

/** Machine code before it is placed in memory. */
export interface UnplacedCode extends CodeDescription {
  readonly bytes: Uint8Array;
  readonly tables: CodeTables;
  /** Applications by optimization key. */
  readonly statistics: Readonly<Record<string, number>>;
}

/** The description alone, of an object that has more. */
export function describeCode(code: CodeDescription): CodeDescription {
  const { layout, signatureIds, explicitBounds, interruptible, fuel, deterministic, nans, stack, inlineSites } = code;
  return { layout, signatureIds, explicitBounds, interruptible, fuel, deterministic, nans, stack, inlineSites };
}
