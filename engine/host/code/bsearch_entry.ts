/**
 * The way into machine code through the C library's `bsearch`, for systems whose loader opens only signed libraries.
 * `bsearch(key, base, 1, 1, code)` calls its comparison `code(key, base)` exactly once, so a call of a library that
 * every system has enters any code. In: position-independent code and the C signatures of its entry points. Out:
 * functions.
 *
 * The comparison is generated code behind the text, one per entry point. For bound calls, `key` is the pointer and
 * `base` the address of the result. For other functions, both are the address of a block of words: the thunk loads the
 * parameters from it and stores the result over the first. Invariant: a thunk loads every parameter before it calls,
 * and the result is read before anything else can run, so nested calls may share the block.
 *
 * Thunks follow System V on x64. On Windows, whose `bsearch` calls as Windows does, a shell around each thunk moves the
 * two parameters and keeps the registers that only Windows' convention preserves: rdi, rsi and xmm6 to xmm15.
 *
 * Sources: ISO C, 7.22.5.1; System V ABI, AMD64; Procedure Call Standard for the Arm 64-bit Architecture; "x64 calling
 * convention" of Microsoft's documentation.
 */
import type { Ffi, ForeignSignature } from "../runtimes/ffi.ts";
import { type CodeEntry, namesOf, pointerOf } from "./code_entry.ts";
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

/** Bytes of thunks are gathered here; positions are offsets from the first byte of the text. */
class ThunkCode {
  readonly bytes: number[];

  constructor(text: Uint8Array) {
    this.bytes = [...text];
    while (this.bytes.length % 16 !== 0) this.bytes.push(0);
  }

  get position(): number {
    return this.bytes.length;
  }

  put(...bytes: number[]): void {
    this.bytes.push(...bytes);
  }

  word(value: number): void {
    this.put(value & 0xff, (value >>> 8) & 0xff, (value >>> 16) & 0xff, (value >>> 24) & 0xff);
  }

  /** A call of the code at offset `target`. */
  call(arch: Arch, target: number): void {
    if (arch === "x64") {
      this.put(0xe8);
      this.word(target - (this.position + 4));
    } else this.word(0x94000000 | (((target - this.position) >> 2) & 0x3ffffff));
  }
}

/** Appends the comparison of a bound call: calls `target(key)` and stores the i32 result at `base`. */
function emitBoundThunk(code: ThunkCode, arch: Arch, target: number): number {
  const start = code.position;
  if (arch === "x64") {
    code.put(0x56); // push rsi
    code.call(arch, target);
    code.put(0x5e); // pop rsi
    code.put(0x89, 0x06); // mov [rsi], eax
    code.put(0x31, 0xc0); // xor eax, eax
    code.put(0xc3); // ret
  } else {
    code.word(0xa9bf7be1); // stp x1, x30, [sp, #-16]
    code.call(arch, target);
    code.word(0xa8c17be1); // ldp x1, x30, [sp], #16
    code.word(0xb9000020); // str w0, [x1]
    code.word(0x2a1f03e0); // mov w0, wzr
    code.word(0xd65f03c0); // ret
  }
  return start;
}

/** The registers of integer parameters on x64: [REX prefix, register field]. */
const X64_INTEGERS = [[0x48, 7], [0x48, 6], [0x48, 2], [0x48, 1], [0x4c, 0], [0x4c, 1]] as const;
const REGISTERS: Readonly<Record<Arch, { integers: number; floats: number }>> = {
  x64: { integers: X64_INTEGERS.length, floats: 8 },
  arm64: { integers: 8, floats: 8 },
};

function isFloat(type: NativeType): boolean {
  return type === "f32" || type === "f64";
}

/** Appends the comparison of a function: parameters and result are words of the block at `key`. */
function emitBlockThunk(code: ThunkCode, arch: Arch, { offset, params, result }: NativeSymbol): number {
  const start = code.position;
  const { integers, floats } = REGISTERS[arch];
  const floatCount = params.filter(isFloat).length;
  if (floatCount > floats || params.length - floatCount > integers) {
    throw new RangeError(`A native function has at most ${integers} integers and ${floats} floats as parameters here`);
  }
  if (arch === "x64") code.put(0x53, 0x48, 0x89, 0xfb); // push rbx; mov rbx, rdi
  else {
    code.word(0xa9bf7bf3); // stp x19, x30, [sp, #-16]
    code.word(0xaa0003f3); // mov x19, x0
  }
  let integer = 0;
  let float = 0;
  params.forEach((type, k) => emitLoad(code, arch, k, isFloat(type) ? { float: float++ } : { integer: integer++ }));
  code.call(arch, offset);
  if (arch === "x64") {
    if (isFloat(result)) code.put(0xf2, 0x0f, 0x11, 0x03); // movsd [rbx], xmm0
    else code.put(0x48, 0x89, 0x03); // mov [rbx], rax
    code.put(0x31, 0xc0, 0x5b, 0xc3); // xor eax, eax; pop rbx; ret
  } else {
    code.word(isFloat(result) ? 0xfd000260 : 0xf9000260); // str d0 or x0, [x19]
    code.word(0xa8c17bf3); // ldp x19, x30, [sp], #16
    code.word(0x2a1f03e0); // mov w0, wzr
    code.word(0xd65f03c0); // ret
  }
  return start;
}

/** Loads word `k` of the block into a parameter register. */
function emitLoad(code: ThunkCode, arch: Arch, k: number, to: { integer: number } | { float: number }): void {
  if (arch === "arm64") {
    code.word("integer" in to ? 0xf9400260 | (k << 10) | to.integer : 0xfd400260 | (k << 10) | to.float);
    return;
  }
  if ("integer" in to) {
    const [rex, register] = X64_INTEGERS[to.integer];
    code.put(rex, 0x8b, 0x83 | (register << 3)); // mov register, [rbx + disp32]
  } else code.put(0xf2, 0x0f, 0x10, 0x83 | (to.float << 3)); // movsd xmm, [rbx + disp32]
  code.word(8 * k);
}

/** The vector registers that Windows' convention preserves, and the shell's frame with 8 bytes of padding. */
const WIN64_VECTORS = { first: 6, count: 10 } as const;
const WIN64_FRAME = 16 * WIN64_VECTORS.count + 8;

/** Stores (0x29) or loads (0x28) the preserved vector registers. */
function moveVectors(code: ThunkCode, opcode: 0x28 | 0x29): void {
  for (let k = 0; k < WIN64_VECTORS.count; k++) {
    const register = WIN64_VECTORS.first + k;
    if (register >= 8) code.put(0x44);
    code.put(0x0f, opcode, 0x84 | ((register & 7) << 3), 0x24); // movaps between xmm and [rsp + 16k]
    code.word(16 * k);
  }
}

/** Appends a comparison of Windows' convention that calls the System V comparison at offset `thunk`. */
function emitWin64Shell(code: ThunkCode, thunk: number): number {
  const start = code.position;
  code.put(0x57, 0x56); // push rdi; push rsi
  code.put(0x48, 0x81, 0xec); // sub rsp, frame
  code.word(WIN64_FRAME);
  moveVectors(code, 0x29);
  code.put(0x48, 0x89, 0xcf, 0x48, 0x89, 0xd6); // mov rdi, rcx; mov rsi, rdx
  code.call("x64", thunk);
  moveVectors(code, 0x28);
  code.put(0x48, 0x81, 0xc4); // add rsp, frame
  code.word(WIN64_FRAME);
  code.put(0x5e, 0x5f, 0xc3); // pop rsi; pop rdi; ret
  return start;
}

/** Words of the block; more than any function has registers. */
const BLOCK_WORDS = 16;

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
  /** The comparison that the C library may call, given the thunk's offset. */
  const comparison = (code: ThunkCode, thunk: number): number =>
    arch === "x64" && ffi.system.x64Convention === "win64" ? emitWin64Shell(code, thunk) : thunk;

  function callThrough({ params, result }: NativeSymbol, code: bigint): NativeFunction {
    const types = params as readonly Exclude<NativeType, "void">[];
    return (...args) => {
      types.forEach((type, k) =>
        void ((views[type] as { [at: number]: number | bigint })[wordsOf[type] * k] = args[k])
      );
      bsearch(block, block, 1n, 1n, code);
      return result === "void" ? undefined : views[result][0];
    };
  }

  return {
    nativeLibrary: <Name extends string>(text: Uint8Array, symbols: Record<Name, NativeSymbol>) => {
      const code = new ThunkCode(text);
      const starts = {} as Record<Name, number>;
      for (const name of namesOf(symbols)) starts[name] = comparison(code, emitBlockThunk(code, arch, symbols[name]));
      const base = memory.placeCode(Uint8Array.from(code.bytes));
      const functions = {} as Record<Name, NativeFunction>;
      for (const name of namesOf(symbols)) functions[name] = callThrough(symbols[name], BigInt(base + starts[name]));
      return functions;
    },
    boundCalls: <Name extends string>(
      text: Uint8Array,
      offsets: Readonly<Record<Name, number>>,
      pointer: number | Readonly<Record<Name, number>>,
    ) => {
      const code = new ThunkCode(text);
      const starts = {} as Record<Name, number>;
      for (const name of namesOf(offsets)) starts[name] = comparison(code, emitBoundThunk(code, arch, offsets[name]));
      const base = memory.placeCode(Uint8Array.from(code.bytes));
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
