/**
 * Stubs that were generated when the engine was built, so that a process need not load and run the generator. In: the
 * JSON texts of a backend's generated_stubs.ts. Out: the image stubs of a variant, the process stubs, and the thunks of
 * common signatures, byte for byte as the backend's generator emits them. `deno task build:stubs` writes the text; a
 * test compares both.
 *
 * Stubs are relocated like any code. The only part that depends on a module is the displacement of its tags.
 */
import { fromBase64 } from "../base/base64.ts";
import { type Signature, TY } from "../ir/types.ts";
import { alignImage, FUNCTION_ALIGNMENT } from "./align_image.ts";
import type { MachineCode } from "./machine_code.ts";
import type { CodegenContext, ProcessStubs, Target } from "./target.ts";

/** A thunk. Offsets are relative to its start. */
export interface StoredThunk {
  /** Bytes in base64. */
  readonly code: string;
  /** Relocations: [offset, kind, target]. */
  readonly relocs: readonly (readonly [number, number, number])[];
  /** Call sites: the columns of MachineCode. */
  readonly calls: readonly (readonly number[])[];
}

/** The stubs of an image, which begins with them. */
export interface StoredImage {
  /** Bytes in base64. */
  readonly code: string;
  /** Pairs: a stub's number, its offset. */
  readonly starts: readonly number[];
  /** Relocations, three numbers each: offset, kind, target. */
  readonly relocs: readonly number[];
  /** Call sites: the columns of MachineCode. */
  readonly calls: readonly number[];
  /** Offsets of 32-bit displacements of the context's tags. */
  readonly tags: readonly number[];
}

/** Thunks by kind, signature and, where it matters, processor ({@linkcode thunkKeys}). */
export interface StoredThunks {
  readonly thunks: readonly StoredThunk[];
  /** Indices in `thunks`. */
  readonly keys: Readonly<Record<string, number>>;
}

/**
 * The content of a backend's generated_stubs.ts: JSON in pieces, because parsing what a process does not need takes
 * longer than everything that it does with the rest.
 */
export interface StoredStubs {
  /** {@linkcode StoredImage}, each once. */
  readonly images: readonly string[];
  /** Indices in `images` by variant. */
  readonly variants: Readonly<Record<string, number>>;
  /** {@linkcode StoredThunks}. */
  readonly thunks: string;
  /** By operating system: ProcessStubs with `code`, in base64, in place of `bytes`. */
  readonly process: Readonly<Record<string, string>>;
  /** Target.cacheMaintenance, in base64. */
  readonly cacheMaintenance?: string;
}

/** The name of the variant of the image stubs that `context` needs. */
export function stubVariant({ explicitBounds, fuel, cpu, stack, continuations, descriptors }: CodegenContext): string {
  return [
    explicitBounds ? "explicit" : "guard",
    fuel === true ? "fuel" : "",
    cpu.has("avx") ? "avx" : "",
    stack === "logged" ? stack : "",
    continuations === true ? "continuations" : "",
    descriptors === true ? "descriptors" : "",
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

/** The stubs of a backend, decoded on first use. */
export class StubStore {
  readonly #stored: StoredStubs;
  readonly #filler: number;
  #thunks: StoredThunks | undefined;
  readonly #images = new Map<string, StubImage>();

  /** `filler` is the byte between functions. */
  constructor(stored: StoredStubs, filler: number) {
    this.#stored = stored;
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
      const stored = this.#stored.process[os];
      if (stored === undefined) return generate(os);
      const { code, ...rest } = JSON.parse(stored) as Omit<ProcessStubs, "bytes"> & { readonly code: string };
      return { ...rest, bytes: fromBase64(code) };
    };
  }

  /** Target.cacheMaintenance. */
  get cacheMaintenance(): Target["cacheMaintenance"] {
    const { cacheMaintenance } = this.#stored;
    return cacheMaintenance === undefined ? undefined : () => fromBase64(cacheMaintenance);
  }

  /** The backend's thunks of one kind: stored, or generated for a signature without a stored one. */
  thunk(kind: ThunkKind, generate: Target["emitEntryThunk"]): Target["emitEntryThunk"] {
    return (signatureId, context, code) => {
      const thunk = this.#thunk(kind, signatureId, context);
      if (thunk === undefined) return generate(signatureId, context, code);
      alignImage(code, FUNCTION_ALIGNMENT, this.#filler);
      (kind === "entry" ? code.entryThunk : code.hostThunk)[signatureId] = code.length;
      appendThunk(thunk, code);
    };
  }

  /** Whether the entry thunk of a signature is stored. */
  readonly hasEntryThunk: Target["hasEntryThunk"] = (signatureId, context) =>
    this.#thunk("entry", signatureId, context) !== undefined;

  #thunk(
    kind: ThunkKind,
    signatureId: number,
    context: Pick<CodegenContext, "signatures" | "cpu">,
  ): StoredThunk | undefined {
    const { thunks, keys } = this.#thunks ??= JSON.parse(this.#stored.thunks) as StoredThunks;
    const [common, own] = thunkKeys(kind, context.signatures[signatureId], context);
    return thunks[keys[common] ?? keys[own]];
  }

  #image(variant: string): StubImage | undefined {
    const known = this.#images.get(variant);
    if (known !== undefined) return known;
    const { images, variants } = this.#stored;
    const stored = images[variants[variant]];
    if (stored === undefined) return undefined;
    const image = new StubImage(JSON.parse(stored) as StoredImage);
    this.#images.set(variant, image);
    return image;
  }
}

/** Appends a thunk to an image. */
function appendThunk({ code: text, relocs, calls }: StoredThunk, code: MachineCode): void {
  const bytes = fromBase64(text);
  const start = code.length;
  code.reserve(bytes.length);
  code.bytes.set(bytes, start);
  code.length = start + bytes.length;
  for (const [at, kind, target] of relocs) code.addReloc(start + at, kind, target);
  code.appendSites(Int32Array.from(calls.flatMap(([at, ...rest]) => [start + at, ...rest])), NO_SITES);
}

/** The stubs of one variant. */
class StubImage {
  readonly #bytes: Uint8Array;
  readonly #calls: Int32Array;
  readonly #stored: StoredImage;

  constructor(stored: StoredImage) {
    this.#bytes = fromBase64(stored.code);
    this.#calls = Int32Array.from(stored.calls);
    this.#stored = stored;
  }

  /** Appends the stubs to an empty image. */
  append(context: CodegenContext, code: MachineCode): void {
    const { starts, relocs, tags } = this.#stored;
    code.reserve(this.#bytes.length);
    code.bytes.set(this.#bytes);
    code.length = this.#bytes.length;
    for (let k = 0; k < starts.length; k += 2) code.stubStart[starts[k]] = starts[k + 1];
    for (let k = 0; k < relocs.length; k += 3) code.addReloc(relocs[k], relocs[k + 1], relocs[k + 2]);
    code.appendSites(this.#calls, NO_SITES);
    const { tagsOffset } = context.layout;
    const view = new DataView(code.bytes.buffer, code.bytes.byteOffset);
    for (const at of tags) view.setInt32(at, tagsOffset, true);
  }
}

const NO_SITES = new Int32Array(0);
