/**
 * Stubs that were generated when the engine was built, so that no process loads and runs their generator. In: the JSON
 * texts of a backend's generated_stubs.ts. Out: the image stubs of a variant, the process stubs, and the thunks of
 * signatures, byte for byte as the backend's generator emits them. `deno task build:stubs` writes the text; a test
 * compares both.
 *
 * Stubs are relocated like any code. The only part that depends on a module is the displacement of its tags.
 */
import { fromBase64 } from "../base/base64.ts";
import { FUNCTION_ALIGNMENT } from "./align_image.ts";
import { CALL_COLUMNS, type MachineCode } from "./machine_code.ts";
import { type AllThunkParts, appendThunk, decodeThunks, type ThunkEncoding, type ThunkKind } from "./stored_thunks.ts";
import type { CodegenContext, ProcessStubs, Target } from "./target.ts";

/**
 * The stubs of all variants of images. An image begins with its stubs, in this order. The code of a stub is the same in
 * each image that has it, since stubs refer to each other by relocations. Lists are flat, because a process reads them
 * once, before V8 compiles anything; a row begins with the index of a stub, and offsets are relative to its start.
 */
export interface StoredImages {
  /** The code of all stubs, one after another, in base64. */
  readonly code: string;
  /** Pairs: a stub's number (STUB), its size in bytes. */
  readonly stubs: readonly number[];
  /** Stubs that only some variants have: the variants from 0 on, and those from 32 on, as bits. */
  readonly variants: readonly number[];
  /** Relocations: offset, kind, target. */
  readonly relocs: readonly number[];
  /** Call sites: the columns of MachineCode. */
  readonly calls: readonly number[];
  /** Offsets of 32-bit displacements of the context's tags. */
  readonly tags: readonly number[];
}

/** Parts of thunks, in base64. */
export interface StoredThunks {
  readonly plain: AllThunkParts<string>;
  /** For processors with AVX; absent if they are equal. */
  readonly avx?: AllThunkParts<string>;
}

/**
 * The content of a backend's generated_stubs.ts: JSON in pieces, because parsing what a process does not need takes
 * longer than everything that it does with the rest.
 */
export interface StoredStubs {
  /** {@linkcode StoredImages}. */
  readonly images: string;
  /** {@linkcode StoredThunks}. */
  readonly thunks: string;
  /** By operating system: ProcessStubs with `code`, in base64, in place of `bytes`. */
  readonly process: Readonly<Record<string, string>>;
  /** Target.cacheMaintenance, in base64. */
  readonly cacheMaintenance?: string;
}

/** The variant of the image stubs that `context` needs: a bit for each property on which they depend. */
export function stubVariant({ explicitBounds, fuel, cpu, stack, continuations, descriptors }: CodegenContext): number {
  const properties = [
    explicitBounds,
    fuel === true,
    cpu.has("avx"),
    stack === "logged",
    continuations === true,
    descriptors === true,
  ];
  return properties.reduce((bits, has, k) => has ? bits | 1 << k : bits, 0);
}

/** The stubs of a backend, decoded on first use. */
export class StubStore {
  readonly #stored: StoredStubs;
  readonly #filler: number;
  readonly #encoding: ThunkEncoding;
  readonly #thunks = new Map<boolean, AllThunkParts<Uint8Array>>();
  readonly #images = new Map<number, StubImage>();

  /** `filler` is the byte between functions; `encoding` completes thunks. */
  constructor(stored: StoredStubs, filler: number, encoding: ThunkEncoding) {
    this.#stored = stored;
    this.#filler = filler;
    this.#encoding = encoding;
  }

  /** Target.emitStubs. */
  readonly emitStubs: Target["emitStubs"] = (context, code) => this.#image(stubVariant(context)).append(context, code);

  /** Target.processStubs. */
  readonly processStubs: Target["processStubs"] = (os) => {
    const stored = this.#stored.process[os];
    if (stored === undefined) throw new Error(`There are no process stubs for ${os}`);
    const { code, ...rest } = JSON.parse(stored) as Omit<ProcessStubs, "bytes"> & { readonly code: string };
    return { ...rest, bytes: fromBase64(code) };
  };

  /** Target.cacheMaintenance. */
  get cacheMaintenance(): Target["cacheMaintenance"] {
    const { cacheMaintenance } = this.#stored;
    return cacheMaintenance === undefined ? undefined : () => fromBase64(cacheMaintenance);
  }

  /** Target.emitEntryThunk and emitHostThunk. */
  readonly emitEntryThunk: Target["emitEntryThunk"] = (signatureId, context, code) => {
    code.entryThunk[signatureId] = this.#appendThunk("entry", signatureId, context, code);
  };
  readonly emitHostThunk: Target["emitHostThunk"] = (signatureId, context, code) => {
    code.hostThunk[signatureId] = this.#appendThunk("host", signatureId, context, code);
  };

  #appendThunk(kind: ThunkKind, signatureId: number, { cpu, signatures }: CodegenContext, code: MachineCode): number {
    const parts = this.#thunkParts(cpu.has("avx"))[kind];
    return appendThunk(code, this.#filler, this.#encoding, kind, parts, signatures[signatureId]);
  }

  #thunkParts(hasAvx: boolean): AllThunkParts<Uint8Array> {
    const known = this.#thunks.get(hasAvx);
    if (known !== undefined) return known;
    const { plain, avx } = JSON.parse(this.#stored.thunks) as StoredThunks;
    const parts = decodeThunks(hasAvx ? avx ?? plain : plain);
    this.#thunks.set(hasAvx, parts);
    return parts;
  }

  #image(variant: number): StubImage {
    const known = this.#images.get(variant);
    if (known !== undefined) return known;
    const image = new StubImage(JSON.parse(this.#stored.images) as StoredImages, variant, this.#filler);
    this.#images.set(variant, image);
    return image;
  }
}

/** The stubs of one variant: an image of their own, with its tables. */
class StubImage {
  readonly #bytes: Uint8Array;
  /** Pairs: a stub's number, its offset. */
  readonly #starts: number[] = [];
  /** Relocations, three numbers each. */
  readonly #relocs: number[] = [];
  readonly #calls: Int32Array;
  /** Offsets of displacements of the context's tags. */
  readonly #tags: number[] = [];

  constructor({ code, stubs, variants, relocs, calls, tags }: StoredImages, variant: number, filler: number) {
    const source = fromBase64(code);
    const bytes = new Uint8Array(source.length + stubs.length * FUNCTION_ALIGNMENT).fill(filler);
    /** Offsets of the stubs, −1 for those that the variant does not have. */
    const places = new Int32Array(stubs.length / 2);
    for (let k = 0; k < variants.length; k += 3) {
      const has = variant < 32 ? variants[k + 1] >> variant : variants[k + 2] >> (variant - 32);
      if ((has & 1) === 0) places[variants[k]] = -1;
    }
    let at = 0, end = 0;
    for (let k = 0; k < places.length; k++) {
      const next = at + stubs[2 * k + 1];
      if (places[k] === 0) {
        const start = (end + FUNCTION_ALIGNMENT - 1) & -FUNCTION_ALIGNMENT;
        bytes.set(source.subarray(at, next), start);
        this.#starts.push(stubs[2 * k], start);
        places[k] = start;
        end = start + next - at;
      }
      at = next;
    }
    for (let k = 0; k < relocs.length; k += 4) {
      const place = places[relocs[k]];
      if (place >= 0) this.#relocs.push(place + relocs[k + 1], relocs[k + 2], relocs[k + 3]);
    }
    const rows: number[] = [];
    for (let k = 0; k < calls.length; k += 1 + CALL_COLUMNS) {
      const place = places[calls[k]];
      if (place < 0) continue;
      rows.push(place + calls[k + 1]);
      for (let column = 1; column < CALL_COLUMNS; column++) rows.push(calls[k + 1 + column]);
    }
    for (let k = 0; k < tags.length; k += 2) {
      const place = places[tags[k]];
      if (place >= 0) this.#tags.push(place + tags[k + 1]);
    }
    this.#bytes = bytes.subarray(0, end);
    this.#calls = Int32Array.from(rows);
  }

  /** Appends the stubs to an empty image. */
  append(context: CodegenContext, code: MachineCode): void {
    const starts = this.#starts, relocs = this.#relocs;
    code.reserve(this.#bytes.length);
    code.bytes.set(this.#bytes);
    code.length = this.#bytes.length;
    for (let k = 0; k < starts.length; k += 2) code.stubStart[starts[k]] = starts[k + 1];
    for (let k = 0; k < relocs.length; k += 3) code.addReloc(relocs[k], relocs[k + 1], relocs[k + 2]);
    code.appendSites(this.#calls, NO_SITES);
    const { tagsOffset } = context.layout;
    const view = new DataView(code.bytes.buffer, code.bytes.byteOffset);
    for (const at of this.#tags) view.setInt32(at, tagsOffset, true);
  }
}

const NO_SITES = new Int32Array(0);
