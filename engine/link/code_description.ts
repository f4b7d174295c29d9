/**
 * The description of a module's machine code: everything that the runtime needs to run it except the bytes, in one type
 * for the compiler's output, artifacts, tokens for other threads and loaded modules.
 */
import type { ContextLayout } from "../abi/context_layout.ts";
import type { CodeSettings } from "../settings/code_settings.ts";
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
  readonly settings: CodeSettings;
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
  const { layout, signatureIds, settings, inlineSites } = code;
  return { layout, signatureIds, settings, inlineSites };
}
