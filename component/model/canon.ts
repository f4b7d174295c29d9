/**
 * Canonical definitions (Explainer, "Canonical Definitions"; Binary, "Canonical Definitions"): one row per built-in
 * with its code in the binary format and its immediates. The decoder, the encoder, the text parser, the printer and
 * validation derive from the rows.
 */
import type { CoreValType, Primitive } from "./types.ts";

/** String encodings, by their codes as canonical options. */
export const STRING_ENCODINGS = ["utf8", "utf16", "latin1+utf16"] as const;
export type StringEncoding = typeof STRING_ENCODINGS[number];

/** A canonical option as written. */
export type CanonOption =
  | { readonly kind: "string-encoding"; readonly encoding: StringEncoding }
  | { readonly kind: "memory" | "realloc" | "post-return" | "callback"; readonly index: number }
  | { readonly kind: "async" };

/** Canonical options with their defaults. Indices are in the index spaces of core memories and core functions. */
export interface CanonOptions {
  readonly encoding: StringEncoding;
  readonly async: boolean;
  readonly memory?: number;
  readonly realloc?: number;
  readonly postReturn?: number;
  readonly callback?: number;
}

/** Collects a list of options, which has no duplicates once it is valid. */
export function collectOptions(options: readonly CanonOption[]): CanonOptions {
  const collected: { -readonly [K in keyof CanonOptions]: CanonOptions[K] } = { encoding: "utf8", async: false };
  for (const option of options) {
    if (option.kind === "string-encoding") collected.encoding = option.encoding;
    else if (option.kind === "async") collected.async = true;
    else if (option.kind === "post-return") collected.postReturn = option.index;
    else collected[option.kind] = option.index;
  }
  return collected;
}

/** Immediates of a canonical built-in. */
export interface CanonImmediates {
  /** Index of a component function type (`lift`), a resource, stream or future type. */
  readonly type: number;
  /** Index of a core function (`lift`) or of a component function (`lower`). */
  readonly func: number;
  readonly options: readonly CanonOption[];
  /** The result of `task.return`. */
  readonly result: Primitive | number | undefined;
  readonly async: boolean;
  readonly cancellable: boolean;
  /** Index of a core memory. */
  readonly memory: number;
  /** The type of a context slot, and its number. */
  readonly slotType: CoreValType;
  readonly slot: number;
  /** Index of a core function type, and of a core table. */
  readonly coreType: number;
  readonly table: number;
  readonly shared: boolean;
}

type Row = readonly [code: number, immediates: readonly (keyof CanonImmediates)[]];

/** Canonical definitions: name in the text format, code, immediates in the order of the binary format. */
export const CANON_ROWS = {
  "lift": [0x00, ["func", "options", "type"]],
  "lower": [0x01, ["func", "options"]],
  "resource.new": [0x02, ["type"]],
  "resource.drop": [0x03, ["type"]],
  "resource.rep": [0x04, ["type"]],
  "task.cancel": [0x05, []],
  "subtask.cancel": [0x06, ["async"]],
  "task.return": [0x09, ["result", "options"]],
  "context.get": [0x0a, ["slotType", "slot"]],
  "context.set": [0x0b, ["slotType", "slot"]],
  "thread.yield": [0x0c, ["cancellable"]],
  "subtask.drop": [0x0d, []],
  "stream.new": [0x0e, ["type"]],
  "stream.read": [0x0f, ["type", "options"]],
  "stream.write": [0x10, ["type", "options"]],
  "stream.cancel-read": [0x11, ["type", "async"]],
  "stream.cancel-write": [0x12, ["type", "async"]],
  "stream.drop-readable": [0x13, ["type"]],
  "stream.drop-writable": [0x14, ["type"]],
  "future.new": [0x15, ["type"]],
  "future.read": [0x16, ["type", "options"]],
  "future.write": [0x17, ["type", "options"]],
  "future.cancel-read": [0x18, ["type", "async"]],
  "future.cancel-write": [0x19, ["type", "async"]],
  "future.drop-readable": [0x1a, ["type"]],
  "future.drop-writable": [0x1b, ["type"]],
  "error-context.new": [0x1c, ["options"]],
  "error-context.debug-message": [0x1d, ["options"]],
  "error-context.drop": [0x1e, []],
  "waitable-set.new": [0x1f, []],
  "waitable-set.wait": [0x20, ["cancellable", "memory"]],
  "waitable-set.poll": [0x21, ["cancellable", "memory"]],
  "waitable-set.drop": [0x22, []],
  "waitable.join": [0x23, []],
  "backpressure.inc": [0x24, []],
  "backpressure.dec": [0x25, []],
  "thread.index": [0x26, []],
  "thread.new-indirect": [0x27, ["coreType", "table"]],
  "thread.resume-later": [0x28, []],
  "thread.suspend": [0x29, ["cancellable"]],
  "thread.suspend-then-resume": [0x2a, ["cancellable"]],
  "thread.yield-then-resume": [0x2b, ["cancellable"]],
  "thread.suspend-then-promote": [0x2c, ["cancellable"]],
  "thread.yield-then-promote": [0x2d, ["cancellable"]],
  "thread.spawn-ref": [0x40, ["shared", "coreType"]],
  "thread.spawn-indirect": [0x41, ["shared", "coreType", "table"]],
  "thread.available-parallelism": [0x42, ["shared"]],
} as const satisfies Record<string, Row>;

/** The name of a canonical definition. */
export type CanonName = keyof typeof CANON_ROWS;

/** A canonical definition: its name and the immediates of its row. */
export type Canon = {
  [N in CanonName]: { readonly name: N } & Pick<CanonImmediates, (typeof CANON_ROWS)[N][1][number]>;
}[CanonName];

/** Names by code. */
export const CANON_NAMES: ReadonlyMap<number, CanonName> = new Map(
  (Object.keys(CANON_ROWS) as CanonName[]).map((name) => [CANON_ROWS[name][0], name]),
);
