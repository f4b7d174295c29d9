/**
 * Stubs that were generated when the engine was built, so that a process need not load and run the generator. In: the
 * JSON text of a backend's generated_stubs.ts. Out: the image stubs of a variant, the process stubs, and the thunks of
 * common signatures, byte for byte as the backend's generator emits them. `deno task build:stubs` writes the text; a
 * test compares both.
 *
 * Stubs are relocated like any code: a stub is its bytes up to the start of the next one, with the relocations and call
 * sites within. The only part that depends on a module is the displacement of its tags.
 */
import { fromBase64 } from "../base/base64.ts";
import { type Signature, TY } from "../ir/types.ts";
import { alignImage, FUNCTION_ALIGNMENT } from "./align_image.ts";
import { CALL_COLUMNS, type MachineCode } from "./machine_code.ts";
import type { CodegenContext, ProcessStubs, Target } from "./target.ts";

/** One stub, which several variants may share. Offsets are relative to its start. */
export interface StoredStub {
  /** Bytes in base64. */
  readonly code: string;
  /** Relocations: [offset, kind, target]. */
  readonly relocs: readonly (readonly [number, number, number])[];
  /** Call sites: the columns of MachineCode. */
  readonly calls: readonly (readonly number[])[];
  /** Offsets of 32-bit displacements of the context's tags. */
  readonly tags: readonly number[];
}

/** The content of a backend's generated_stubs.ts. */
export interface StoredStubs {
  readonly stubs: readonly StoredStub[];
  /** By variant: [stub number, index in `stubs`], in the order of the image. */
  readonly images: Readonly<Record<string, readonly (readonly [number, number])[]>>;
  /** By kind, signature and, where it matters, processor ({@linkcode thunkKeys}): index in `stubs`. */
  readonly thunks: Readonly<Record<string, number>>;
  /** By operating system. */
  readonly process: Readonly<Record<string, Omit<ProcessStubs, "bytes"> & { readonly code: string }>>;
}

/** The name of the variant of the image stubs that `context` needs. */
export function stubVariant({ explicitBounds, fuel, cpu, stack }: CodegenContext): string {
  return [
    explicitBounds ? "explicit" : "guard",
    fuel === true ? "fuel" : "",
    cpu.has("avx") ? "avx" : "",
    stack === "logged" ? stack : "",
  ].join(" ").trim();
}

/** Functions that JavaScript calls have entry thunks, imported ones host thunks. */
export type ThunkKind = "entry" | "host";

/** The letter of a type in the names of thunks; references are passed as integers are. */
function typeLetter(type: number): number {
  return type === TY.REF ? TY.I64 : type;
}

/** The names of the thunk of a signature: for all processors, and for those with AVX or without it. */
export function thunkKeys(
  kind: ThunkKind,
  { params, results }: Signature,
  { cpu }: Pick<CodegenContext, "cpu">,
): [common: string, own: string] {
  const [from, to] = [params, results].map((types) => Array.from(types, typeLetter).join(""));
  const key = `${kind} ${from}_${to}`;
  return [key, `${key} ${cpu.has("avx") ? "avx" : "-"}`];
}

/** The decoded stubs of a backend. */
export class StubStore {
  readonly #text: string;
  readonly #filler: number;
  #stored: StoredStubs | undefined;
  readonly #images = new Map<string, StubImage>();

  /** `text` is JSON of {@linkcode StoredStubs}; it is read on first use. `filler` is the byte between functions. */
  constructor(text: string, filler: number) {
    this.#text = text;
    this.#filler = filler;
  }

  /** The image stubs of the backend: stored, or generated for a variant that is not. */
  emitter(generate: Target["emitStubs"]): Target["emitStubs"] {
    return (context, code) => {
      const image = this.#image(stubVariant(context));
      if (image === undefined) generate(context, code);
      else image.append(context, code);
    };
  }

  /** The process stubs of the backend, which come from `generate` for an operating system without stored ones. */
  process(generate: Target["processStubs"]): Target["processStubs"] {
    return (os) => {
      const stored = this.#content.process[os];
      if (stored === undefined) return generate(os);
      const { code, ...rest } = stored;
      return { ...rest, bytes: fromBase64(code) };
    };
  }

  /** The backend's thunks of one kind: stored, or generated for a signature without a stored one. */
  thunk(kind: ThunkKind, generate: Target["emitEntryThunk"]): Target["emitEntryThunk"] {
    return (signatureId, context, code) => {
      const index = this.#thunkIndex(kind, signatureId, context);
      if (index === undefined) return generate(signatureId, context, code);
      alignImage(code, FUNCTION_ALIGNMENT, this.#filler);
      (kind === "entry" ? code.entryThunk : code.hostThunk)[signatureId] = code.length;
      appendStub(this.#content.stubs[index], code);
    };
  }

  /** Whether the entry thunk of a signature is stored. */
  readonly hasEntryThunk: Target["hasEntryThunk"] = (signatureId, context) =>
    this.#thunkIndex("entry", signatureId, context) !== undefined;

  #thunkIndex(
    kind: ThunkKind,
    signatureId: number,
    context: Pick<CodegenContext, "signatures" | "cpu">,
  ): number | undefined {
    const { thunks } = this.#content;
    const [common, own] = thunkKeys(kind, context.signatures[signatureId], context);
    return thunks[common] ?? thunks[own];
  }

  get #content(): StoredStubs {
    return this.#stored ??= JSON.parse(this.#text) as StoredStubs;
  }

  #image(variant: string): StubImage | undefined {
    const known = this.#images.get(variant);
    if (known !== undefined) return known;
    const { stubs, images } = this.#content;
    const rows = images[variant];
    if (rows === undefined) return undefined;
    const image = new StubImage(rows.map(([number, index]) => [number, stubs[index]]));
    this.#images.set(variant, image);
    return image;
  }
}

/** Appends a stub without tags to an image. */
function appendStub({ code: text, relocs, calls }: StoredStub, code: MachineCode): void {
  const bytes = fromBase64(text);
  const start = code.length;
  code.reserve(bytes.length);
  code.bytes.set(bytes, start);
  code.length = start + bytes.length;
  for (const [at, kind, target] of relocs) code.addReloc(start + at, kind, target);
  code.appendSites(Int32Array.from(calls.flatMap(([at, ...rest]) => [start + at, ...rest])), NO_SITES);
}

/** The stubs of one variant, assembled. */
class StubImage {
  readonly #bytes: Uint8Array;
  readonly #starts: readonly (readonly [number, number])[];
  readonly #relocs: readonly (readonly [number, number, number])[];
  readonly #calls: Int32Array;
  readonly #tags: readonly number[];

  constructor(rows: readonly (readonly [number, StoredStub])[]) {
    const parts: Uint8Array[] = [];
    const starts: [number, number][] = [];
    const relocs: [number, number, number][] = [];
    const calls: number[] = [];
    const tags: number[] = [];
    let length = 0;
    for (const [number, stub] of rows) {
      starts.push([number, length]);
      for (const [at, kind, target] of stub.relocs) relocs.push([at + length, kind, target]);
      for (const [at, ...rest] of stub.calls) calls.push(at + length, ...rest);
      for (const at of stub.tags) tags.push(at + length);
      const bytes = fromBase64(stub.code);
      parts.push(bytes);
      length += bytes.length;
    }
    this.#bytes = new Uint8Array(length);
    parts.forEach((part, k) => this.#bytes.set(part, starts[k][1]));
    this.#starts = starts;
    this.#relocs = relocs;
    this.#calls = Int32Array.from(calls);
    this.#tags = tags;
  }

  /** Appends the stubs to an empty image. */
  append(context: CodegenContext, code: MachineCode): void {
    code.reserve(this.#bytes.length);
    code.bytes.set(this.#bytes);
    code.length = this.#bytes.length;
    for (const [number, start] of this.#starts) code.stubStart[number] = start;
    for (const [at, kind, target] of this.#relocs) code.addReloc(at, kind, target);
    code.appendSites(this.#calls, NO_SITES);
    const { tagsOffset } = context.layout;
    const view = new DataView(code.bytes.buffer, code.bytes.byteOffset);
    for (const at of this.#tags) view.setInt32(at, tagsOffset, true);
  }
}

const NO_SITES = new Int32Array(0);

/** Rows of call sites as arrays, relative to `start`, for those in [start, end]. */
export function callRowsIn(rows: Int32Array, start: number, end: number): number[][] {
  const found: number[][] = [];
  for (let at = 0; at < rows.length; at += CALL_COLUMNS) {
    const [offset, ...rest] = rows.subarray(at, at + CALL_COLUMNS);
    if (offset > start && offset <= end) found.push([offset - start, ...rest]);
  }
  return found;
}
