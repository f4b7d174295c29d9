/**
 * Instances whose functions run in ir/testing/interpret.ts, to test translation (and, with `prepare`, any pass) without
 * machine code. In: a ValidModule and its imports. Out: an instance with exports. All state is in a simulated address
 * space, laid out as in context_layout.ts, so that the IR's loads of the context, tables and records are tested.
 *
 * Values are unsigned bit patterns; a funcref is the address of its record, an externref a number chosen by the test
 * plus 1.
 */
import { noneBut } from "../../engine/testing/optimizations.ts";
import { BUILTIN_ROWS, type BuiltinName } from "../../engine/abi/builtins.ts";
import {
  CONTEXT,
  MEMORY,
  RECORD,
  SHARED_LENGTH_SIZE,
  TABLE,
  TAG_SIZE,
  THREAD,
} from "../../engine/abi/context_layout.ts";
import { Bug, LinkError } from "../../engine/base/errors.ts";
import { IrFunction } from "../../engine/ir/function.ts";
import {
  interpret,
  type Place,
  type TailRequest,
  ThrownSignal,
  TrapSignal,
  type World,
} from "../../engine/ir/testing/interpret.ts";
import { OP } from "../../engine/ir/ops.ts";
import { constValue } from "../../engine/translate/const_value.ts";
import { FunctionTranslator } from "../../engine/translate/function.ts";
import { type EnvOptions, type ModuleEnv, moduleEnv } from "../../engine/translate/module_env.ts";
import { type ConstValue, GLOBAL, recordOffset } from "../../engine/translate/module_facts.ts";
import { TRAP } from "../../engine/base/traps.ts";
import type { ValidModule } from "../../engine/validate/valid_module.ts";
import { elementCount, type Expr } from "../../engine/wasm/module.ts";
import { type MemoryType, pageBytes } from "../../engine/wasm/types.ts";

/** Implementation limits of the simulated memories, in bytes, and tables, so that excessive growth fails fast. */
const MAX_BYTES = 1 << 26;
const MAX_ELEMENTS = 1 << 20;

interface Segment {
  address: number;
  view: DataView;
}

/** The memory shared by all instances of a test. */
export class AddressSpace {
  #next = 0x100000;
  readonly #segments: Segment[] = [];
  readonly instances: Map<number, InterpretedInstance> = new Map();
  readonly hostFunctions: HostFunction[] = [];
  /** The thread state, which throws write and landing pads read. */
  readonly thread: Segment = this.allocate(THREAD.SIZE);
  tagCount = 0n;
  /** The last caught exception; `exceptions` are those with an exnref (index + 1). */
  caught: ThrownSignal | undefined;
  readonly exceptions: ThrownSignal[] = [];
  /** Maximum steps of one call from outside. */
  stepLimit = 2_000_000;

  /** Allocates `bytes` bytes and reserves `reserved` bytes of addresses. */
  allocate(bytes: number, reserved: number = bytes): Segment {
    const segment = { address: this.#next, view: new DataView(new ArrayBuffer(bytes)) };
    this.#next += (reserved + 0xffff) & ~0xffff;
    this.#next += 0x10000;
    this.#segments.push(segment);
    return segment;
  }

  resolve(address: number, width: number): Place | undefined {
    for (const { address: start, view } of this.#segments) {
      if (address >= start && address + width <= start + view.byteLength) return { view, offset: address - start };
    }
    return undefined;
  }

  /** Creates a record for a function of the test. */
  hostRecord(f: HostFunction, typeId: number): number {
    const segment = this.allocate(RECORD.SIZE);
    this.hostFunctions.push(f);
    segment.view.setUint32(RECORD.TYPE_ID, typeId, true);
    segment.view.setUint32(RECORD.HOST, this.hostFunctions.length, true);
    return segment.address;
  }
}

type HostFunction = (args: readonly bigint[]) => readonly bigint[];

export class PretendMemory {
  readonly kind = "memory";
  readonly segment: Segment;
  readonly max: number;
  readonly users: { context: DataView; offset: number }[] = [];
  /** Contains the length, in the form in which code reads that of a shared memory. */
  readonly length: Segment;

  readonly pageBytes: number;

  constructor(space: AddressSpace, type: MemoryType) {
    const { min, max } = type.limits;
    this.pageBytes = pageBytes(type);
    this.segment = space.allocate(Number(min) * this.pageBytes, 2 ** 30);
    this.length = space.allocate(8);
    this.max = Math.min(Number(max ?? Infinity), MAX_BYTES / this.pageBytes);
  }

  publish(): void {
    this.length.view.setBigUint64(0, BigInt(this.segment.view.byteLength), true);
    for (const { context, offset } of this.users) {
      context.setBigUint64(offset + MEMORY.BASE, BigInt(this.segment.address), true);
      context.setBigUint64(offset + MEMORY.LENGTH, BigInt(this.segment.view.byteLength), true);
    }
  }

  grow(delta: bigint): bigint {
    const pages = this.segment.view.byteLength / this.pageBytes;
    if (BigInt(pages) + delta > BigInt(this.max)) return 0xffffffffffffffffn;
    this.segment.view = grownView(this.segment.view, (pages + Number(delta)) * this.pageBytes);
    this.publish();
    return BigInt(pages);
  }
}

export class PretendTable {
  readonly kind = "table";
  readonly segment: Segment;
  readonly max: number;
  readonly users: { context: DataView; offset: number }[] = [];

  constructor(space: AddressSpace, min: number, max: number) {
    this.segment = space.allocate(min * 8, MAX_ELEMENTS * 8);
    this.max = Math.min(max, MAX_ELEMENTS);
  }

  get length(): number {
    return this.segment.view.byteLength / 8;
  }

  publish(): void {
    for (const { context, offset } of this.users) {
      context.setBigUint64(offset + TABLE.BASE, BigInt(this.segment.address), true);
      context.setBigUint64(offset + TABLE.LENGTH, BigInt(this.length), true);
    }
  }

  get(index: number): bigint {
    return this.segment.view.getBigUint64(index * 8, true);
  }

  set(index: number, value: bigint): void {
    this.segment.view.setBigUint64(index * 8, value, true);
  }

  grow(delta: bigint, value: bigint): bigint {
    const old = this.length;
    if (BigInt(old) + delta > BigInt(this.max)) return 0xffffffffffffffffn;
    this.segment.view = grownView(this.segment.view, (old + Number(delta)) * 8);
    for (let k = old; k < this.length; k++) this.set(k, value);
    this.publish();
    return BigInt(old);
  }
}

function grownView(view: DataView, bytes: number): DataView {
  const next = new Uint8Array(bytes);
  next.set(new Uint8Array(view.buffer));
  return new DataView(next.buffer);
}

/** A global's cell: 8 bytes at an address. */
interface PretendGlobal {
  kind: "global";
  address: number;
  mutable: boolean;
}

/** A function by the address of its record. */
export interface PretendFunction {
  kind: "func";
  record: number;
}

/** A tag by the identity that code compares. */
interface PretendTag {
  kind: "tag";
  identity: bigint;
}

export type PretendExtern = PretendMemory | PretendTable | PretendGlobal | PretendFunction | PretendTag;

export interface InterpretOptions extends Partial<EnvOptions> {
  /** Runs on every function after translation, to test passes. */
  prepare?: (f: IrFunction, env: ModuleEnv) => void;
  /** Called whenever a block is entered. */
  entered?: (f: IrFunction, block: number) => void;
}

export class InterpretedInstance implements World {
  readonly space: AddressSpace;
  readonly env: ModuleEnv;
  readonly exports: Map<string, PretendExtern> = new Map();
  readonly contextAddress: number;
  readonly context: DataView;
  steps = 0;
  fuel: bigint | undefined;
  tail: TailRequest | null = null;
  readonly #options: InterpretOptions;
  readonly #functions: (IrFunction | undefined)[] = [];
  readonly #memories: PretendMemory[] = [];
  readonly #tables: PretendTable[] = [];
  readonly #globals: PretendGlobal[] = [];
  readonly #tags: PretendTag[] = [];
  readonly #globalValues: ConstValue[] = [];
  readonly #droppedData: Set<number> = new Set();
  readonly #droppedElems: Set<number> = new Set();
  #depth = 0;

  constructor(
    valid: ValidModule,
    space: AddressSpace,
    imports: (module: string, name: string) => PretendExtern | undefined,
    options: InterpretOptions = {},
  ) {
    this.space = space;
    this.env = moduleEnv(valid, { optimizations: noneBut({}), ...options });
    this.#options = options;
    const segment = space.allocate(this.env.layout.size);
    this.contextAddress = segment.address;
    this.context = segment.view;
    space.instances.set(this.contextAddress, this);
    this.#link(imports);
    this.#define();
    for (const { name, kind, index } of valid.exports) this.exports.set(name, this.#extern(kind, index));
    this.#initialize();
    if (valid.start !== undefined) this.invoke(recordOffset(this.env, valid.start) + this.contextAddress, []);
  }

  // World.

  memory0(): DataView {
    return this.#memories[0].segment.view;
  }

  memoryLength(index: number): number {
    return this.#memories[index].segment.view.byteLength;
  }

  resolve(address: number, width: number): Place | undefined {
    return this.space.resolve(address, width);
  }

  call(definedIndex: number, args: readonly bigint[]): readonly bigint[] {
    if (++this.#depth > 1500) {
      this.#depth = 0;
      throw new TrapSignal(TRAP.STACK_EXHAUSTED);
    }
    const f = this.#functionOf(definedIndex);
    const depth = this.#depth;
    try {
      let results = interpret(f, args, this);
      while (this.tail !== null) results = this.#makeTailCall(this.tail);
      return results;
    } finally {
      this.#depth = depth - 1;
    }
  }

  callRecord(address: number, args: readonly bigint[]): readonly bigint[] {
    const { view, offset } = this.space.resolve(address, RECORD.SIZE)!;
    const host = view.getUint32(offset + RECORD.HOST, true);
    if (host !== 0) return this.space.hostFunctions[host - 1](args);
    const instance = this.space.instances.get(Number(view.getBigUint64(offset + RECORD.CONTEXT, true)))!;
    if (instance !== this) instance.steps = this.steps;
    const results = instance.call(Number(view.getBigUint64(offset + RECORD.CODE, true)), args);
    if (instance !== this) this.steps = instance.steps;
    return results;
  }

  callImport(index: number, args: readonly bigint[]): readonly bigint[] {
    return this.callRecord(this.contextAddress + recordOffset(this.env, index), args);
  }

  callBuiltin(index: number, args: readonly bigint[]): readonly bigint[] {
    return this.#builtin(BUILTIN_ROWS[index].name, args);
  }

  #makeTailCall({ op, target, args }: TailRequest): readonly bigint[] {
    this.tail = null;
    if (op === OP.CALL) return interpret(this.#functionOf(target), args, this);
    const isRecord = op === OP.CALL_RECORD;
    const address = isRecord ? Number(args[0]) : this.contextAddress + recordOffset(this.env, target);
    const rest = isRecord ? args.slice(1) : args;
    const { view, offset } = this.space.resolve(address, RECORD.SIZE)!;
    const own = view.getUint32(offset + RECORD.HOST, true) === 0 &&
      Number(view.getBigUint64(offset + RECORD.CONTEXT, true)) === this.contextAddress;
    if (!own) return this.callRecord(address, rest);
    return interpret(this.#functionOf(Number(view.getBigUint64(offset + RECORD.CODE, true))), rest, this);
  }

  entered(f: IrFunction, block: number): void {
    this.#options.entered?.(f, block);
  }

  landed(exception: ThrownSignal): void {
    const { view } = this.space.thread;
    view.setBigUint64(THREAD.CAUGHT_TAG, exception.tag, true);
    new Uint8Array(view.buffer).set(exception.payload, THREAD.OVERFLOW);
    this.space.caught = exception;
  }

  /** Calls the function of a record from outside. */
  invoke(record: number, args: readonly bigint[]): readonly bigint[] {
    this.steps = this.space.stepLimit;
    this.#depth = 0;
    try {
      return this.callRecord(record, args);
    } catch (error) {
      // The host's stack may be exhausted before the call count reaches its limit.
      throw error instanceof RangeError ? new TrapSignal(TRAP.STACK_EXHAUSTED) : error;
    }
  }

  /** The IR of a defined function, translated on first use. */
  #functionOf(definedIndex: number): IrFunction {
    let f = this.#functions[definedIndex];
    if (f === undefined) {
      f = new IrFunction();
      new FunctionTranslator().translate(this.env, definedIndex, f);
      this.#options.prepare?.(f, this.env);
      this.#functions[definedIndex] = f;
    }
    return f;
  }

  // Instantiation.

  #link(imports: (module: string, name: string) => PretendExtern | undefined): void {
    const { valid } = this.env;
    let funcs = 0;
    for (const { module, name, desc } of valid.imports) {
      const extern = imports(module, name);
      if (extern === undefined || extern.kind !== desc.kind) throw new LinkError(`unknown import ${module}.${name}`);
      if (extern.kind === "memory") this.#memories.push(extern);
      else if (extern.kind === "table") this.#tables.push(extern);
      else if (extern.kind === "global") this.#globals.push(extern);
      else if (extern.kind === "tag") this.#tags.push(extern);
      else {
        const from = this.space.resolve(extern.record, RECORD.SIZE)!;
        const to = recordOffset(this.env, funcs);
        const typeId = valid.canonicalIds[valid.funcTypeIndices[funcs++]];
        for (let k = 0; k < RECORD.SIZE; k++) this.context.setUint8(to + k, from.view.getUint8(from.offset + k));
        // A host function takes the type of its import.
        if (from.view.getUint32(from.offset + RECORD.HOST, true) !== 0) {
          this.context.setUint32(to + RECORD.TYPE_ID, typeId, true);
        }
      }
    }
  }

  #define(): void {
    const { valid, layout } = this.env;
    const { context, space } = this;
    for (const type of valid.memories) this.#memories.push(new PretendMemory(space, type));
    for (const { type } of valid.tables) {
      this.#tables.push(new PretendTable(space, Number(type.limits.min), Number(type.limits.max ?? 0xffffffffn)));
    }
    this.#memories.forEach((memory, k) => {
      memory.users.push({ context, offset: layout.memoriesOffset + k * MEMORY.SIZE });
      memory.publish();
      if (!layout.shared) return;
      context.setBigUint64(layout.sharedLengthsOffset + k * SHARED_LENGTH_SIZE, BigInt(memory.length.address), true);
    });
    this.#tables.forEach((table, k) => {
      table.users.push({ context, offset: layout.tablesOffset + k * TABLE.SIZE });
      table.publish();
    });
    valid.funcs.forEach((func, k) => {
      const at = recordOffset(this.env, valid.importedFuncCount + k);
      context.setBigUint64(at + RECORD.CODE, BigInt(k), true);
      context.setBigUint64(at + RECORD.CONTEXT, BigInt(this.contextAddress), true);
      context.setUint32(at + RECORD.TYPE_ID, valid.canonicalIds[func.typeIndex], true);
    });
    while (this.#tags.length < valid.tagTypes.length) this.#tags.push({ kind: "tag", identity: ++space.tagCount });
    this.#tags.forEach(({ identity }, k) => context.setBigUint64(layout.tagsOffset + k * TAG_SIZE, identity, true));
    const { address } = space.thread;
    context.setBigUint64(CONTEXT.THREAD, BigInt(address), true);
    context.setBigUint64(CONTEXT.OVERFLOW, BigInt(address + THREAD.OVERFLOW), true);
    valid.canonicalIds.forEach((id, k) => context.setUint32(layout.typeIdsOffset + k * 4, id, true));
    this.#defineGlobals();
    valid.tables.forEach(({ init }, k) => {
      if (init === undefined) return;
      const table = this.#tables[valid.importedTableCount + k];
      for (let n = 0; n < table.length; n++) table.set(n, this.#value(init));
    });
  }

  #defineGlobals(): void {
    const { valid, globalKind, globalOffset } = this.env;
    valid.globalTypes.forEach(({ mutable }, k) => {
      const offset = globalOffset[k];
      if (k < valid.importedGlobalCount) {
        const { address } = this.#globals[k];
        const cell = this.space.resolve(address, 8)!;
        const bits = cell.view.getBigUint64(cell.offset, true);
        const pointer = globalKind[k] === GLOBAL.POINTER;
        this.context.setBigUint64(offset, pointer ? BigInt(address) : bits, true);
        this.#globalValues.push({ ty: this.env.globalTy[k], ...halves(bits), func: -1 });
        return;
      }
      const bits = this.#value(valid.globals[k - valid.importedGlobalCount].init);
      this.context.setBigUint64(offset, bits, true);
      this.#globals.push({ kind: "global", address: this.contextAddress + offset, mutable });
      this.#globalValues.push({ ty: this.env.globalTy[k], ...halves(bits), func: -1 });
    });
  }

  /** Value of a constant expression. */
  #value(expr: Expr): bigint {
    const value = constValue(expr, this.#globalValues)!;
    if (value.func >= 0) return BigInt(this.contextAddress + recordOffset(this.env, value.func));
    return (BigInt(value.hi >>> 0) << 32n) | BigInt(value.lo >>> 0);
  }

  #initialize(): void {
    const { valid } = this.env;
    [...valid.elems].forEach((segment, k) => {
      if (segment.mode.kind === "active") {
        const start = BigInt.asUintN(32, this.#value(segment.mode.start));
        this.#tableInit(segment.mode.table, k, start, 0n, BigInt(elementCount(segment)));
      }
      if (segment.mode.kind !== "passive") this.#droppedElems.add(k);
    });
    valid.datas.forEach((segment, k) => {
      if (segment.mode.kind !== "active") return;
      const start = BigInt.asUintN(32, this.#value(segment.mode.start));
      this.#memoryInit(segment.mode.memory, k, start, 0n, BigInt(segment.bytes.length));
      this.#droppedData.add(k);
    });
  }

  #extern(kind: string, index: number): PretendExtern {
    if (kind === "memory") return this.#memories[index];
    if (kind === "table") return this.#tables[index];
    if (kind === "global") return this.#globals[index];
    if (kind === "tag") return this.#tags[index];
    return { kind: "func", record: this.contextAddress + recordOffset(this.env, index) };
  }

  // Routines.

  #builtin(name: BuiltinName, args: readonly bigint[]): readonly bigint[] {
    const [a, b, c, d, e] = args as [bigint, bigint, bigint, bigint, bigint];
    switch (name) {
      case "memory_grow":
        return [this.#memories[Number(a)].grow(b)];
      case "memory_move":
        return this.#move(Number(a), Number(b), Number(c));
      case "memory_set": {
        if (c === 0n) return [];
        const { view, offset } = this.space.resolve(Number(a), Number(c))!;
        new Uint8Array(view.buffer).fill(Number(b & 0xffn), offset, offset + Number(c));
        return [];
      }
      case "memory_wait32":
      case "memory_wait64": {
        // With a single thread, a wait ends at once or never; "never" is a timeout.
        const bytes = name === "memory_wait32" ? 4n : 8n;
        const memory = this.#memories[Number(a)];
        if (b + bytes > BigInt(memory.segment.view.byteLength)) throw new TrapSignal(TRAP.MEMORY_OUT_OF_BOUNDS);
        if (!this.env.memoryIsShared[Number(a)]) throw new TrapSignal(TRAP.EXPECTED_SHARED_MEMORY);
        const bits = Number(bytes) * 8;
        let value = 0n;
        for (let k = Number(bytes) - 1; k >= 0; k--) {
          value = (value << 8n) | BigInt(memory.segment.view.getUint8(Number(b) + k));
        }
        return [value === BigInt.asUintN(bits, c) ? 2n : 1n];
      }
      case "memory_notify":
        if (b + 4n > BigInt(this.#memories[Number(a)].segment.view.byteLength)) {
          throw new TrapSignal(TRAP.MEMORY_OUT_OF_BOUNDS);
        }
        return [0n];
      case "check_stack":
        throw new Error("The interpreter does not run code with the stack rule logged");
      case "compile_body":
        throw new Error("The interpreter runs no machine code");
      case "memory_init":
        return this.#memoryInit(Number(a), Number(b), c, d, e);
      case "data_drop":
        this.#droppedData.add(Number(a));
        return [];
      case "table_grow":
        return [this.#tables[Number(a)].grow(c, b)];
      case "table_fill": {
        const table = this.#tables[Number(a)];
        if (b + d > BigInt(table.length)) throw new TrapSignal(TRAP.TABLE_OUT_OF_BOUNDS);
        for (let k = 0n; k < d; k++) table.set(Number(b + k), c);
        return [];
      }
      case "table_copy":
        return this.#tableCopy(this.#tables[Number(a)], this.#tables[Number(b)], c, d, e);
      case "table_init":
        return this.#tableInit(Number(a), Number(b), c, d, e);
      case "elem_drop":
        this.#droppedElems.add(Number(a));
        return [];
      case "throw": {
        const { view } = this.space.thread;
        const bytes = this.env.valid.tagTypes[Number(a)].params.length * 16;
        const payload = new Uint8Array(view.buffer, THREAD.OVERFLOW, bytes).slice();
        throw new ThrownSignal(this.#tags[Number(a)].identity, payload);
      }
      case "throw_ref":
        if (a === 0n) throw new TrapSignal(TRAP.NULL_EXCEPTION);
        throw this.space.exceptions[Number(a) - 1];
      case "rethrow":
        throw this.space.caught!;
      case "caught":
        return [BigInt(this.space.exceptions.push(this.space.caught!))];
      case "gc_allocate":
      case "array_new_data":
      case "array_new_elem":
      case "array_init_data":
      case "array_init_elem":
        throw new Bug("The interpreter does not support garbage collection");
      case "cont_new":
      case "cont_bind":
      case "suspend":
      case "resume":
      case "resume_throw":
      case "resume_throw_ref":
      case "switch_to":
        throw new Bug("The interpreter does not support stack switching");
    }
  }

  #move(to: number, from: number, count: number): readonly bigint[] {
    if (count === 0) return [];
    const target = this.space.resolve(to, count)!;
    const source = this.space.resolve(from, count)!;
    const bytes = new Uint8Array(source.view.buffer, source.offset, count).slice();
    new Uint8Array(target.view.buffer).set(bytes, target.offset);
    return [];
  }

  #memoryInit(memory: number, segment: number, to: bigint, from: bigint, count: bigint): readonly bigint[] {
    const { view } = this.#memories[memory].segment;
    const bytes = this.#droppedData.has(segment) ? new Uint8Array(0) : this.env.valid.datas[segment].bytes;
    if (from + count > BigInt(bytes.length) || to + count > BigInt(view.byteLength)) {
      throw new TrapSignal(TRAP.MEMORY_OUT_OF_BOUNDS);
    }
    new Uint8Array(view.buffer).set(bytes.subarray(Number(from), Number(from + count)), Number(to));
    return [];
  }

  #tableInit(index: number, segment: number, to: bigint, from: bigint, count: bigint): readonly bigint[] {
    const table = this.#tables[index];
    const elem = this.env.valid.elems.at(segment)!;
    const { init } = elem;
    const length = this.#droppedElems.has(segment) ? 0 : elementCount(elem);
    if (from + count > BigInt(length) || to + count > BigInt(table.length)) {
      throw new TrapSignal(TRAP.TABLE_OUT_OF_BOUNDS);
    }
    for (let k = 0; k < Number(count); k++) {
      const n = Number(from) + k;
      const value = init.kind === "funcs"
        ? BigInt(this.contextAddress + recordOffset(this.env, init.indices.at(n)!))
        : this.#value(init.exprs.at(n)!);
      table.set(Number(to) + k, value);
    }
    return [];
  }

  #tableCopy(to: PretendTable, from: PretendTable, at: bigint, source: bigint, count: bigint): readonly bigint[] {
    if (source + count > BigInt(from.length) || at + count > BigInt(to.length)) {
      throw new TrapSignal(TRAP.TABLE_OUT_OF_BOUNDS);
    }
    const values: bigint[] = [];
    for (let k = 0n; k < count; k++) values.push(from.get(Number(source + k)));
    values.forEach((value, k) => to.set(Number(at) + k, value));
    return [];
  }
}

function halves(bits: bigint): { lo: number; hi: number } {
  return { lo: Number(BigInt.asIntN(32, bits)), hi: Number(BigInt.asIntN(32, bits >> 32n)) };
}
