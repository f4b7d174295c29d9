/**
 * The state of a body during generation: bytes so far, locals, labels, remaining budget, estimated run-time cost. In: a
 * plan and a function of it. Out: the code entry.
 *
 * Every run terminates: loop counters have no other writers, direct calls go to finished functions (whose cost is
 * known) or recurse on a decreasing argument, and indirect calls reach only functions without indirect calls. NaN bits
 * stay invisible: code that stores, reinterprets or takes the sign of a computed float first canonicalizes NaNs.
 */
import { Bytes } from "../module_bytes.ts";
import type { Random } from "../random.ts";
import { heapOf, isNullable, isReference, matches, type TypeName, writeHeap, writeType } from "../value_types.ts";
import { OP } from "./opcodes.ts";
import { MARKED, type ModulePlan, type PlannedFunction, type PlannedMemory } from "./plan.ts";

/** Flag of a memory argument with an ordering. */
const HAS_ORDERING = 0x10;

interface Label {
  /** The types of a branch's operands; undefined if branching there is not allowed. */
  readonly types: readonly TypeName[] | undefined;
  /** A legacy handler, a valid target of rethrow. */
  readonly handler?: boolean;
}

/** The integer types an address may have. */
export type AddressType = "i32" | "i64";

/**
 * The generators that nest in each other. Bodies carry them, so that a generator does not import those that contain it.
 * `depth` is the maximum nesting depth.
 */
export interface Generators {
  /** Leaves an i32, often from a comparison. */
  condition(b: Body, depth: number): void;
  /** Leaves a new value of a reference type. */
  construct(b: Body, type: TypeName, depth: number): void;
  /** Leaves one value of `type`. */
  expression(b: Body, type: TypeName, depth: number): void;
  /** Statements, then `results` on the stack. */
  sequence(b: Body, results: readonly TypeName[], depth: number): void;
  /** Leaves the stack unchanged. */
  statement(b: Body, depth: number): void;
}

export class Body {
  readonly plan: ModulePlan;
  readonly self: PlannedFunction;
  readonly random: Random;
  readonly out = new Bytes();
  readonly locals: TypeName[];
  /** Locals that statements may write. */
  readonly writable: boolean[];
  /** Locals that must be set before anything else, since they have no default. */
  readonly unset: number[] = [];
  readonly labels: Label[] = [];
  readonly snippets: { type: TypeName; code: Uint8Array }[] = [];
  readonly scratch: Partial<Record<string, number>> = {};
  readonly counters: number[] = [];
  readonly marked = new Map<string, number>();
  /** Whether this body marks executed features. */
  readonly telling: boolean;
  budget: number;
  weight = 1;
  cost = 0;
  /** Grows with everything that must not be duplicated: writes, labels. */
  impure = 0;
  selfCalls = 0;
  readonly #generators: Generators;

  constructor(plan: ModulePlan, self: PlannedFunction, budget: number, generators: Generators) {
    this.#generators = generators;
    this.plan = plan;
    this.self = self;
    this.random = plan.random;
    this.budget = budget;
    const random = plan.random;
    const count = random.chance(1)
      ? random.between(100, 1200)
      : random.chance(15)
      ? random.between(12, 40)
      : random.below(9);
    this.locals = [...self.signature.params, ...Array.from({ length: count }, () => random.pick(plan.types))];
    this.writable = this.locals.map((_, i) => !(self.style !== "plain" && i === 0));
    this.telling = plan.marks !== undefined && (self.forced !== undefined || random.chance(75));
  }

  /** The code entry. */
  entry(): Bytes {
    const declared = this.locals.slice(this.self.signature.params.length);
    const runs: Bytes[] = [];
    for (let i = 0; i < declared.length;) {
      let n = 1;
      while (i + n < declared.length && declared[i + n] === declared[i]) n++;
      const run = new Bytes().u32(n);
      writeType(run, declared[i], this.plan.shift);
      runs.push(run);
      i += n;
    }
    const entry = new Bytes().vector(runs).bytes(this.out.taken());
    return new Bytes().u32(entry.length).bytes(entry.taken());
  }

  has(feature: string): boolean {
    return this.plan.features.has(feature);
  }

  /** Whether the module has typed function references. */
  get typed(): boolean {
    return this.plan.definitions.length > 0;
  }

  matches(sub: TypeName, over: TypeName): boolean {
    return sub === over || matches(sub, over, this.plan.definitions);
  }

  allMatch(subs: readonly TypeName[], overs: readonly TypeName[]): boolean {
    return subs.length === overs.length && subs.every((type, i) => this.matches(type, overs[i]));
  }

  // ---- nested code --------------------------------------------------------------------------------------------------

  condition(depth: number): void {
    this.#generators.condition(this, depth);
  }

  construct(type: TypeName, depth: number): void {
    this.#generators.construct(this, type, depth);
  }

  expression(type: TypeName, depth: number): void {
    this.#generators.expression(this, type, depth);
  }

  sequence(results: readonly TypeName[], depth: number): void {
    this.#generators.sequence(this, results, depth);
  }

  statement(depth: number): void {
    this.#generators.statement(this, depth);
  }

  // ---- locals -------------------------------------------------------------------------------------------------------

  newLocal(type: TypeName, writable: boolean): number {
    this.locals.push(type);
    this.writable.push(writable);
    return this.locals.length - 1;
  }

  /** Locals whose values match `type`, except scratch locals. */
  readable(type: TypeName): number[] {
    const scratch = this.scratch[type];
    const found: number[] = [];
    for (let i = 0; i < this.locals.length; i++) {
      if (i !== scratch && this.matches(this.locals[i], type)) found.push(i);
    }
    return found;
  }

  /** Writable locals that accept a value of `type`. */
  settable(type: TypeName): number[] {
    const found: number[] = [];
    for (let i = 0; i < this.locals.length; i++) {
      if (this.writable[i] && this.matches(type, this.locals[i])) found.push(i);
    }
    return found;
  }

  get(local: number): void {
    this.out.byte(OP.localGet).u32(local);
  }

  // ---- budget -------------------------------------------------------------------------------------------------------

  step(): void {
    this.budget--;
    this.cost += this.weight;
  }

  /** Marks `feature` as executed, at most three times per body. */
  mark(feature: (typeof MARKED)[number]): void {
    const before = this.marked.get(feature) ?? 0;
    if (!this.telling || before === 3) return;
    this.marked.set(feature, before + 1);
    const global = this.plan.marks!;
    this.out.byte(OP.globalGet).u32(global).byte(0x41).s32(1 << MARKED.indexOf(feature)).byte(OP.i32Or);
    this.out.byte(OP.globalSet).u32(global);
    this.impure++;
  }

  // ---- instructions -------------------------------------------------------------------------------------------------

  /** Writes an opcode: 0xfb00 … 0xfcff and 0xfe00 … have a prefix byte, vectors start at 0xfd000. */
  opcode(code: number): this {
    if (code >= 0xfd000) this.out.byte(0xfd).u32(code - 0xfd000);
    else if (code >= 0xfb00) this.out.byte(code >> 8).u32(code & 255);
    else this.out.byte(code);
    return this;
  }

  constant(type: TypeName, value: number): void {
    if (type === "i32") this.out.byte(0x41).s32(value);
    else this.out.byte(0x42).s64(BigInt(value));
  }

  /** `and` with a constant. */
  mask(type: AddressType, value: number): void {
    this.constant(type, value);
    this.out.byte(type === "i32" ? 0x71 : 0x83);
  }

  type(type: TypeName): void {
    writeType(this.out, type, this.plan.shift);
  }

  heap(heap: string): void {
    writeHeap(this.out, heap, this.plan.shift);
  }

  null(type: TypeName): void {
    this.out.byte(OP.refNull);
    this.heap(heapOf(type));
  }

  /** The type index of a definition. */
  index(definition: number): number {
    return definition + this.plan.shift;
  }

  /** The type index of a function's type. */
  functionType({ definition, signature }: { definition: number | undefined; signature: PlannedFunction["signature"] }) {
    return definition === undefined ? this.plan.typeIndex(signature) : this.index(definition);
  }

  addressType(memory: number): AddressType {
    return this.plan.memories[memory].is64 ? "i64" : "i32";
  }

  /** A memory, usually the first; undefined if there is none. */
  memory(fits: (memory: PlannedMemory) => boolean = () => true): number | undefined {
    let found = this.plan.memories.flatMap((m, i) => fits(m) ? [i] : []);
    const filled = found.filter((i) => this.plan.memories[i].min > 0);
    if (filled.length > 0 && this.random.chance(96)) found = filled;
    return found.length === 0 ? undefined : this.random.pick(found);
  }

  /** Writes the opcode and immediates of a load or store; `ordering`: the byte of an atomic access that has one. */
  access(
    code: number,
    align: number,
    offset: number | bigint,
    memory: number,
    exact = false,
    ordering?: number,
  ): void {
    this.opcode(code);
    let log = exact || this.random.chance(85) ? align : this.random.below(align + 1);
    if (ordering !== undefined) log |= HAS_ORDERING;
    if (memory > 0 || (this.has("multi-memory") && this.random.chance(5))) this.out.u32(log | 0x40).u32(memory);
    else this.out.u32(log);
    if (ordering !== undefined) this.out.byte(ordering);
    this.out.u64(offset);
    this.markMemory(memory);
  }

  /** Marks the features that an instruction on `memory` uses; called after the instruction. */
  markMemory(memory: number): void {
    if (this.plan.memories[memory].is64) this.mark("memory64");
    if (memory > 0) this.mark("multi-memory");
    if (this.plan.memories[memory].bytePages) this.mark("custom-page-sizes");
  }

  // ---- labels -------------------------------------------------------------------------------------------------------

  /** Depths of the valid branch targets. */
  branchTargets(): number[] {
    const depths: number[] = [];
    this.labels.forEach((label, i) => {
      if (label.types !== undefined) depths.push(this.labels.length - 1 - i);
    });
    return depths;
  }

  /** Depths of the branch targets that accept `types`. */
  targetsOf(types: readonly TypeName[]): number[] {
    return this.branchTargets().filter((depth) => this.allMatch(types, this.labelTypes(depth)));
  }

  labelTypes(depth: number): readonly TypeName[] {
    return this.labels[this.labels.length - 1 - depth].types!;
  }

  blockType(params: readonly TypeName[], results: readonly TypeName[]): void {
    if (params.length === 0 && results.length === 0) this.out.byte(0x40);
    else if (params.length === 0 && results.length === 1 && this.random.chance(95)) this.type(results[0]);
    else this.out.s32(this.plan.typeIndex({ params, results }));
  }

  /** A type for a local, with a default value. */
  anyType(): TypeName {
    return this.random.pick(this.plan.types);
  }

  /** Whether locals of this type have a default value. */
  static hasDefault(type: TypeName): boolean {
    return !isReference(type) || isNullable(type);
  }
}
