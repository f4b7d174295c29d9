/**
 * Stubs that were generated when the engine was built, so that no process loads and runs their generator. In: the JSON
 * texts of a backend's generated_stubs.ts. Out: the image stubs of a variant, the process stubs, and the thunks of
 * signatures, byte for byte as the backend's generator emits them. `deno task build:stubs` writes the text; a test
 * compares both.
 *
 * Stubs are relocated like any code. The only part that depends on a module is the displacement of its tags.
 */
import { fromBase64 } from "../base/base64.ts";
import { alignImage, FUNCTION_ALIGNMENT } from "./align_image.ts";
import { MachineCode } from "./machine_code.ts";
import { type AllThunkParts, appendThunk, decodeThunks, type ThunkEncoding, type ThunkKind } from "./stored_thunks.ts";
import type { CodegenContext, ProcessStubs, Target } from "./target.ts";

/** A call site: the columns of MachineCode. */
export type StoredCall = readonly [
  at: number,
  frame: number,
  pos: number,
  site: number,
  landing: number,
  cross: number,
];

/**
 * A stub of images. Its code is the same in each image that has it, since stubs refer to each other by relocations.
 * Offsets are relative to its start.
 */
export interface StoredStub {
  /** One of STUB. */
  readonly number: number;
  /** Its size in bytes. */
  readonly size: number;
  /** Relocations: [offset, kind, target]. None when absent. */
  readonly relocs?: readonly (readonly [number, number, number])[];
  /** None when absent. */
  readonly calls?: readonly StoredCall[];
  /** Offsets of 32-bit displacements of the context's tags. None when absent. */
  readonly tags?: readonly number[];
  /** The variants of images that have it, as bits of a hexadecimal number. All when absent. */
  readonly variants?: string;
}

/** The stubs of all variants of images. An image begins with its stubs, in this order. */
export interface StoredImages {
  /** The code of all stubs, one after another, in base64. */
  readonly code: string;
  readonly stubs: readonly StoredStub[];
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

/** Whether images of a variant have the stub. */
function isIn({ variants }: StoredStub, variant: number): boolean {
  return variants === undefined || (BigInt(`0x${variants}`) >> BigInt(variant) & 1n) === 1n;
}

/** The stubs of one variant, in an image of their own. */
class StubImage {
  readonly #code = new MachineCode(0, 0);
  /** Offsets of displacements of the context's tags. */
  readonly #tags: number[] = [];

  constructor({ code: text, stubs }: StoredImages, variant: number, filler: number) {
    const bytes = fromBase64(text);
    const code = this.#code;
    let at = 0;
    for (const stub of stubs) {
      const { number, size, relocs = [], calls = [], tags = [] } = stub;
      const end = at + size;
      if (isIn(stub, variant)) {
        alignImage(code, FUNCTION_ALIGNMENT, filler);
        const start = code.stubStart[number] = code.length;
        code.reserve(size);
        code.bytes.set(bytes.subarray(at, end), start);
        code.length += size;
        for (const [offset, kind, target] of relocs) code.addReloc(start + offset, kind, target);
        for (const [offset, ...rest] of calls) code.addCallSite(start + offset, ...rest);
        for (const offset of tags) this.#tags.push(start + offset);
      }
      at = end;
    }
    code.bytes = code.bytes.slice(0, code.length);
  }

  /** Appends the stubs to an empty image. */
  append(context: CodegenContext, code: MachineCode): void {
    const { bytes, stubStart, relocAt, relocKind, relocTarget, callRows } = this.#code;
    code.reserve(bytes.length);
    code.bytes.set(bytes);
    code.length = bytes.length;
    code.stubStart.set(stubStart);
    for (let k = 0; k < relocAt.length; k++) code.addReloc(relocAt[k], relocKind[k], relocTarget[k]);
    code.appendSites(callRows, NO_SITES);
    const { tagsOffset } = context.layout;
    const view = new DataView(code.bytes.buffer, code.bytes.byteOffset);
    for (const at of this.#tags) view.setInt32(at, tagsOffset, true);
  }
}

const NO_SITES = new Int32Array(0);
