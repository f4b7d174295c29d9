/**
 * The way into machine code through the C library's `bsearch`, for systems whose loader opens only signed libraries.
 * `bsearch(key, base, 1, 1, code)` calls its comparison `code(key, base)` exactly once, so a call of a library that
 * every system has enters any code. In: position-independent code and the C signatures of its entry points. Out:
 * functions.
 *
 * The comparison is stored code behind the text (generated_code.ts), one per entry point. For bound calls, `key` is the
 * pointer and `base` the address of the result. For other functions, both are the address of a block of words: the
 * comparison loads every register for parameters from it, and stores the result over the first integer and the first
 * float. Invariant: a comparison loads all registers before it calls, and the result is read before anything else can
 * run, so nested calls may share the block.
 *
 * Source: ISO C, 7.22.5.1.
 */
import { fromBase64 } from "../../base/base64.ts";
import type { Ffi, ForeignSignature } from "../runtimes/ffi.ts";
import { type CodeEntry, namesOf, pointerOf } from "./code_entry.ts";
import { BLOCK_COMPARISON, BOUND_COMPARISON } from "./generated_code.ts";
import type { NativeFunction, NativeSymbol, NativeType } from "../host.ts";

const SEARCH = {
  bsearch: { params: ["i64", "i64", "i64", "i64", "i64"], result: "i64" },
} as const satisfies Record<string, ForeignSignature>;

/** The part of the host that the entry needs: memory that becomes executable, and views of memory. */
interface EntryMemory {
  /** Allocates `bytes` of readable and writable memory, which is never freed. */
  allocate(bytes: number): number;
  /** Places code in executable pages of its own; returns its address. */
  placeCode(text: Uint8Array): number;
  view(address: number, bytes: number): ArrayBuffer;
}

type Arch = "x64" | "arm64";

/** The numbers of registers for parameters. */
const REGISTERS: Readonly<Record<Arch, { integers: number; floats: number }>> = {
  x64: { integers: 6, floats: 8 },
  arm64: { integers: 8, floats: 8 },
};

/** The first word of floats in the block, behind those of integers. */
export const BLOCK_FLOATS = 8;

function isFloat(type: NativeType): boolean {
  return type === "f32" || type === "f64";
}

/**
 * The words of a function's parameters in the block. Throws a RangeError if there are more than the processor has
 * registers for.
 */
function parameterWords(arch: Arch, params: readonly NativeType[]): number[] {
  const { integers, floats } = REGISTERS[arch];
  const floatCount = params.filter(isFloat).length;
  if (floatCount > floats || params.length - floatCount > integers) {
    throw new RangeError(`A native function has at most ${integers} integers and ${floats} floats as parameters here`);
  }
  let integer = 0, float = BLOCK_FLOATS;
  return params.map((type) => isFloat(type) ? float++ : integer++);
}

/** Words of the block. */
const BLOCK_WORDS = BLOCK_FLOATS + 8;

/** A comparison as generated_code.ts stores it. */
interface Comparison {
  readonly code: string;
  readonly labels: { readonly distance: number; readonly win64?: number };
}

/** Bytes that an aligned comparison may begin at. */
const ALIGNMENT = 16;

/** A text and the comparisons behind it. */
class ComparedCode {
  #bytes: Uint8Array<ArrayBuffer>;
  readonly #isWin64: boolean;

  constructor(text: Uint8Array, isWin64: boolean) {
    this.#bytes = new Uint8Array(text);
    this.#isWin64 = isWin64;
  }

  get bytes(): Uint8Array {
    return this.#bytes;
  }

  /** Appends a comparison that enters the code at offset `target`; returns the offset that bsearch calls. */
  append({ code, labels: { distance, win64 = 0 } }: Comparison, target: number): number {
    const added = fromBase64(code);
    const start = Math.ceil(this.#bytes.length / ALIGNMENT) * ALIGNMENT;
    const bytes = new Uint8Array(start + added.length);
    bytes.set(this.#bytes);
    bytes.set(added, start);
    new DataView(bytes.buffer).setBigInt64(start + distance, BigInt(target - start), true);
    this.#bytes = bytes;
    return start + (this.#isWin64 ? win64 : 0);
  }
}

/** Enters machine code through bsearch. */
export function bsearchEntry(ffi: Ffi, libc: string, memory: EntryMemory): CodeEntry {
  const { bsearch } = ffi.open(libc, SEARCH);
  const { arch } = ffi;
  const address = memory.allocate(8 * BLOCK_WORDS);
  const buffer = memory.view(address, 8 * BLOCK_WORDS);
  const views: Record<Exclude<NativeType, "void">, BigInt64Array | Int32Array | Float32Array | Float64Array> = {
    i64: new BigInt64Array(buffer),
    i32: new Int32Array(buffer),
    f32: new Float32Array(buffer),
    f64: new Float64Array(buffer),
  };
  const wordsOf = { i64: 1, f64: 1, i32: 2, f32: 2 } as const;
  const block = BigInt(address);
  const isWin64 = arch === "x64" && ffi.system.x64Convention === "win64";

  function callThrough({ params, result }: NativeSymbol, code: bigint): NativeFunction {
    const types = params as readonly Exclude<NativeType, "void">[];
    const words = parameterWords(arch, params);
    return (...args) => {
      types.forEach((type, k) =>
        void ((views[type] as { [at: number]: number | bigint })[wordsOf[type] * words[k]] = args[k])
      );
      bsearch(block, block, 1n, 1n, code);
      if (result === "void") return undefined;
      return views[result][isFloat(result) ? wordsOf[result] * BLOCK_FLOATS : 0];
    };
  }

  return {
    nativeLibrary: <Name extends string>(text: Uint8Array, symbols: Record<Name, NativeSymbol>) => {
      const code = new ComparedCode(text, isWin64);
      const starts = {} as Record<Name, number>;
      for (const name of namesOf(symbols)) starts[name] = code.append(BLOCK_COMPARISON[arch], symbols[name].offset);
      const functions = {} as Record<Name, NativeFunction>;
      const base = memory.placeCode(code.bytes);
      for (const name of namesOf(symbols)) functions[name] = callThrough(symbols[name], BigInt(base + starts[name]));
      return functions;
    },
    boundCalls: <Name extends string>(
      text: Uint8Array,
      offsets: Readonly<Record<Name, number>>,
      pointer: number | Readonly<Record<Name, number>>,
    ) => {
      const code = new ComparedCode(text, isWin64);
      const starts = {} as Record<Name, number>;
      for (const name of namesOf(offsets)) starts[name] = code.append(BOUND_COMPARISON[arch], offsets[name]);
      const base = memory.placeCode(code.bytes);
      const at = memory.allocate(8);
      const result = new Int32Array(memory.view(at, 8));
      const calls = {} as Record<Name, () => number>;
      for (const name of namesOf(offsets)) {
        const bound = BigInt(pointerOf(pointer, name));
        calls[name] = ownClosure(bsearch, bound, BigInt(at), BigInt(base + starts[name]), result);
      }
      return calls;
    },
  };
}

/** The call of a comparison, compiled from its own source so that its call site stays monomorphic (object_entry.ts). */
function ownClosure(
  bsearch: (...args: bigint[]) => unknown,
  pointer: bigint,
  at: bigint,
  code: bigint,
  result: Int32Array,
): () => number {
  const call = (): number => {
    bsearch(pointer, at, 1n, 1n, code);
    return result[0];
  };
  try {
    const text = "return () => { search(pointer, at, 1n, 1n, code); return result[0]; };";
    return new Function("search", "pointer", "at", "code", "result", text)(bsearch, pointer, at, code, result) as () =>
      number;
  } catch {
    return call; // code from strings is not allowed here
  }
}
