/**
 * Instrumentation for exact counts. In: a valid module. Out: a module that does the same and counts calls of its
 * functions, iterations of its loops, allocated objects and memory growth in a memory of its own.
 *
 * The memory comes last in its index space and locals after those of each function, so that no index of the module
 * changes. Every site has one or two counters of 64 bits. Invariant: a counter changes only where control passes its
 * site; the stack of operands is the same before and after.
 */
import { decodeModule } from "../binary/decode.ts";
import { encodeModule } from "../binary/encode.ts";
import { CodeReader } from "../wasm/code_reader.ts";
import type { Module, RawBytes } from "../wasm/module.ts";
import { idOf, type Mnemonic, OPCODES } from "../wasm/opcodes.ts";
import { type FuncType, I32, type MemoryType, PAGE_BYTES, pageBytes, type ValType } from "../wasm/types.ts";
import { Assembler } from "./assembler.ts";
import { requireBodySize } from "./body_limit.ts";

/** The kinds of sites, by the meaning of their first counter. */
type SiteKind = "calls" | "iterations" | "objects" | "growth";

/** A place with counters. */
export interface CountSite {
  readonly kind: SiteKind;
  /** The function index. */
  readonly func: number;
  /** The offset of the instruction in the binary form; of a function's calls, that of its body. */
  readonly offset: number;
  /** The mnemonic of an allocation. */
  readonly instruction?: string;
  /** The memory that grows, or the type of the allocated object. */
  readonly index?: number;
  /** The number of the first counter. Allocations have elements, growth has pages in the next one. */
  readonly counter: number;
}

/** An instrumented module. */
interface CountedModule {
  readonly bytes: Uint8Array<ArrayBuffer>;
  readonly sites: readonly CountSite[];
  /** The name of the export with the counters. */
  readonly memory: string;
  /** The engine's limit of pages with which the module's own memories have the given limit. */
  readonly maxMemoryPages: number | undefined;
}

const COUNTER_BYTES = 8;

const LOOP = idOf("loop");
const GROW = idOf("memory.grow");
const ARRAY_FIXED = idOf("array.new_fixed");
/** Allocations, and whether the number of elements is the last operand. */
const ALLOCATIONS: ReadonlyMap<number, boolean> = new Map(
  ([
    ["struct.new", false],
    ["struct.new_default", false],
    ["struct.new_desc", false],
    ["struct.new_default_desc", false],
    ["array.new", true],
    ["array.new_default", true],
    ["array.new_fixed", false],
    ["array.new_data", true],
    ["array.new_elem", true],
  ] as const satisfies readonly (readonly [Mnemonic, boolean])[]).map((
    [name, takesLength],
  ) => [idOf(name), takesLength]),
);

/**
 * Instruments the module with the binary form `bytes`, whose memories may have at most `maxPages` pages. Throws an
 * Error for a function that becomes too large.
 */
export function countModule(bytes: Uint8Array, maxPages?: number): CountedModule {
  const module = decodeModule(bytes);
  const imported = { func: 0, table: 0, memory: 0, global: 0, tag: 0 };
  for (const { desc } of module.imports) imported[desc.kind]++;
  const sites = new Sites();
  const memory = imported.memory + module.memories.length;
  const addresses = memoryAddresses(module);
  const funcs = module.funcs.map(({ typeIndex, body }, k) => {
    const params = (module.types[typeIndex].composite as FuncType).params.length;
    const code = new CountedBody(memory, imported.func + k, params, sites, addresses).write(body);
    requireBodySize(imported.func + k, body.bytes.length, code.length);
    return { typeIndex, body: { bytes: code, offset: 0 } };
  });
  const pages = BigInt(Math.ceil(sites.counters * COUNTER_BYTES / PAGE_BYTES));
  const name = unusedName(module);
  const { memories, maxMemoryPages } = limitedMemories(module, maxPages, Number(pages));
  const counted = encodeModule({
    ...module,
    funcs,
    memories: [...memories, { limits: { address: I32, min: pages, max: pages }, shared: false }],
    exports: [...module.exports, { name, kind: "memory", index: memory, offset: 0 }],
    customs: [],
  });
  return { bytes: new Uint8Array(counted), sites: sites.list, memory: name, maxMemoryPages };
}

/**
 * The module's memories with a limit of pages in their types, beside a memory of `added` pages. If one is too large
 * from the beginning, the engine's limit refuses it as in the module itself.
 */
function limitedMemories(
  { memories }: Module,
  maxPages: number | undefined,
  added: number,
): { readonly memories: Module["memories"]; readonly maxMemoryPages: number | undefined } {
  if (maxPages === undefined || added <= maxPages) return { memories, maxMemoryPages: maxPages };
  const mostOf = (memory: MemoryType) => BigInt(maxPages * PAGE_BYTES / pageBytes(memory));
  if (memories.some((memory) => memory.limits.min > mostOf(memory))) return { memories, maxMemoryPages: maxPages };
  const limited = memories.map((memory) => {
    const { limits } = memory;
    const most = mostOf(memory);
    const max = limits.max === undefined || limits.max > most ? most : limits.max;
    return { ...memory, limits: { ...limits, max } };
  });
  return { memories: limited, maxMemoryPages: added };
}

/** The value of counter `counter` in the memory of the counters. */
export function readCounter(bytes: Uint8Array, counter: number): number {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  return Number(view.getBigUint64(counter * COUNTER_BYTES, true));
}

/** The address types of the module's memories. */
function memoryAddresses({ imports, memories }: Module): ValType[] {
  const imported = imports.flatMap(({ desc }) => desc.kind === "memory" ? [desc.type] : []);
  return [...imported, ...memories].map(({ limits }) => limits.address);
}

function unusedName({ exports }: Module): string {
  let name = "waft.counts";
  while (exports.some((each) => each.name === name)) name += "_";
  return name;
}

/** Numbers the sites and their counters. */
class Sites {
  readonly list: CountSite[] = [];
  counters = 0;

  /** Adds a site with this number of counters and returns the first one. */
  add(site: Omit<CountSite, "counter">, counters: 1 | 2): number {
    const counter = this.counters;
    this.list.push({ ...site, counter });
    this.counters += counters;
    return counter;
  }
}

/** Writes the instructions of one function with counters. */
class CountedBody extends Assembler {
  readonly #func: number;
  readonly #sites: Sites;
  readonly #addresses: readonly ValType[];
  readonly #params: number;
  readonly #added: ValType[] = [];
  #firstAdded = 0;

  constructor(memory: number, func: number, params: number, sites: Sites, addresses: readonly ValType[]) {
    super(memory, 256);
    this.#func = func;
    this.#params = params;
    this.#sites = sites;
    this.#addresses = addresses;
  }

  /** The body with counters: declarations of locals, then the instructions. */
  write({ bytes, offset }: RawBytes): Uint8Array {
    const reader = new CodeReader(bytes, 0, bytes.length, offset);
    const declared: ValType[] = [];
    reader.locals(declared);
    this.#firstAdded = this.#params + declared.length;
    this.#count(this.#sites.add({ kind: "calls", func: this.#func, offset }, 1));
    while (!reader.done) this.#instruction(reader);
    const whole = new Assembler(0, this.length + 16);
    whole.locals([...declared, ...this.#added]);
    whole.raw(this.finish());
    return whole.finish();
  }

  #instruction(reader: CodeReader): void {
    const from = reader.pos;
    const id = reader.next();
    const instruction = reader.bytes.subarray(from, reader.pos);
    const allocation = ALLOCATIONS.get(id);
    if (allocation !== undefined) this.#allocation(id, reader, instruction, allocation);
    else if (id === GROW) this.#growth(reader, instruction);
    else this.raw(instruction);
    if (id === LOOP) this.#count(this.#sites.add({ kind: "iterations", func: this.#func, offset: reader.at }, 1));
  }

  #allocation(id: number, { at, imm }: CodeReader, instruction: Uint8Array, takesLength: boolean): void {
    const site = {
      kind: "objects",
      func: this.#func,
      offset: at,
      instruction: OPCODES[id].mnemonic,
      index: imm.index,
    } as const;
    const counter = this.#sites.add(site, 2);
    if (!takesLength) {
      this.raw(instruction);
      if (id === ARRAY_FIXED) this.#add(counter + 1, () => this.wide(imm.index2));
    } else {
      const length = this.#local(I32);
      this.op("local.tee", length).raw(instruction);
      this.#add(counter + 1, () => this.op("local.get", length).op("i64.extend_i32_u"));
    }
    this.#count(counter);
  }

  #growth({ at, imm: { index } }: CodeReader, instruction: Uint8Array): void {
    const counter = this.#sites.add({ kind: "growth", func: this.#func, offset: at, index }, 2);
    const type = this.#addresses[index] ?? I32;
    const pages = this.#local(type);
    const size = this.#local(type, 1);
    this.op("local.tee", pages).raw(instruction);
    this.op("local.tee", size);
    this.#count(counter);
    this.#add(counter + 1, () => {
      this.op("local.get", pages);
      if (type === I32) this.op("i64.extend_i32_u");
      this.wide(0).op("local.get", size);
      if (type === I32) this.constant(-1).op("i32.ne");
      else this.wide(-1).op("i64.ne");
      this.op("select");
    });
  }

  /** The number of the added local of this type, the first or second one. */
  #local(type: ValType, rank: 0 | 1 = 0): number {
    const known = this.#added.flatMap((each, k) => each === type ? [k] : [])[rank];
    return this.#firstAdded + (known ?? this.#added.push(type) - 1);
  }

  #count(counter: number): void {
    this.#add(counter, () => this.wide(1));
  }

  /** Adds to a counter the 64-bit number that `push` leaves on the stack. */
  #add(counter: number, push: () => void): void {
    this.constant(0).constant(0).access("i64.load", counter * COUNTER_BYTES);
    push();
    this.op("i64.add").access("i64.store", counter * COUNTER_BYTES);
  }
}
