/**
 * The functions of a deterministic module that count the depth of calls (deterministic.ts). In: a ValidModule whose
 * bodies may not have been validated. Out: by defined function, whether its activations count.
 *
 * Only a cycle of calls can exhaust the stack without limit. A function counts if it can reach such a cycle; the others
 * begin chains of calls that end after a number of activations that the module's bytes decide. A cycle of tail calls
 * alone keeps its depth. A call that may leave the module, to an import or through a reference that the host can have
 * passed, can come back, and belongs to a cycle. Resuming a computation is a call through a reference. A switch is no
 * call: the other computation takes the place of the current one.
 *
 * Invariants: a function that calls a function that counts, counts too. The activations that do not count take at most
 * MAX_UNCOUNTED units at a time. The result depends on the bytes of the module alone, so it is the same in both tiers
 * and on every processor.
 */
import { doubled } from "../base/columns.ts";
import type { StackRule } from "../settings/code_settings.ts";
import type { ValidModule } from "../validate/valid_module.ts";
import { CodeReader } from "../wasm/code_reader.ts";
import type { Expr } from "../wasm/module.ts";
import { idOf } from "../wasm/opcodes.ts";
import { type FuncType, isRef } from "../wasm/types.ts";

/** Units of stack for an activation: a base, and one unit for each parameter and local. */
export const ACTIVATION_UNITS = 64;
export const LOCAL_UNITS = 16;
/** The units that a chain of activations may take without counting. */
const MAX_UNCOUNTED = 1 << 16;

interface CallForm {
  /** Whether the call names a function; others go through a reference. */
  readonly isDirect: boolean;
  readonly isTail: boolean;
}

/** By row: the form of a call. */
const CALL_FORMS: ReadonlyMap<number, CallForm> = new Map([
  [idOf("call"), { isDirect: true, isTail: false }],
  [idOf("call_indirect"), { isDirect: false, isTail: false }],
  [idOf("call_ref"), { isDirect: false, isTail: false }],
  [idOf("return_call"), { isDirect: true, isTail: true }],
  [idOf("return_call_indirect"), { isDirect: false, isTail: true }],
  [idOf("return_call_ref"), { isDirect: false, isTail: true }],
  [idOf("resume"), { isDirect: false, isTail: false }],
  [idOf("resume_throw"), { isDirect: false, isTail: false }],
  [idOf("resume_throw_ref"), { isDirect: false, isTail: false }],
]);
const REF_FUNC = idOf("ref.func");

/** By defined function of `valid`: 1 if its activations count under `rule`, which is the module's own. */
export function countedFunctions(valid: ValidModule, rule: StackRule = "counted"): Uint8Array {
  if (rule === "counted") return new CallGraph(valid).counted();
  return new Uint8Array(valid.funcs.length).fill(rule === "native" ? 0 : 1);
}

/**
 * The rule by which a module limits the depth of calls if `rule` is wanted. A module with tail calls counts: its
 * machine frames depend on the functions that a tail call has replaced, so no replay could find the call that exhausted
 * the stack.
 */
export function stackRuleOf(valid: ValidModule, rule: StackRule): StackRule {
  return rule === "native" && hasTailCalls(valid) ? "counted" : rule;
}

function hasTailCalls({ funcs }: ValidModule): boolean {
  const reader = new CodeReader(new Uint8Array(0));
  return funcs.some(({ body: { bytes, offset } }) => {
    reader.reset(bytes, 0, bytes.length, offset);
    reader.locals();
    while (!reader.done) if (CALL_FORMS.get(reader.next())?.isTail === true) return true;
    return false;
  });
}

/**
 * The graph of calls. Its nodes are the defined functions, a node for calls through references, which lead to every
 * function with a reference, and a node for the outside.
 */
class CallGraph {
  readonly #valid: ValidModule;
  readonly #functions: number;
  readonly #indirect: number;
  readonly #outside: number;
  /** By node: its first edge. The edges of a node follow each other. */
  readonly #start: Int32Array;
  /** By edge: its target times 2, plus 1 if the call keeps the caller's activation. */
  #edges: Int32Array = new Int32Array(1024);
  #count = 0;
  /** By node: the units of one activation. */
  readonly #units: Float64Array;
  /** By function index: 1 if the module makes a reference to it. */
  readonly #referenced: Uint8Array;
  readonly #reader = new CodeReader(new Uint8Array(0));

  constructor(valid: ValidModule) {
    this.#valid = valid;
    this.#functions = valid.funcs.length;
    this.#indirect = this.#functions;
    this.#outside = this.#functions + 1;
    this.#start = new Int32Array(this.#functions + 3);
    this.#units = new Float64Array(this.#functions + 2);
    this.#referenced = new Uint8Array(valid.funcTypes.length);
    this.#findReferences();
    for (let k = 0; k < this.#functions; k++) this.#scanBody(k);
    this.#start[this.#indirect] = this.#count;
    this.#addReferenced();
    this.#start[this.#outside] = this.#count;
    this.#addEdge(this.#outside, true);
    this.#start[this.#outside + 1] = this.#count;
  }

  #addEdge(to: number, keepsCaller: boolean): void {
    if (this.#count === this.#edges.length) this.#edges = doubled(this.#edges, this.#count + 1);
    this.#edges[this.#count++] = to * 2 + (keepsCaller ? 1 : 0);
  }

  /** The node of function index `func`; that of the outside for an index that validation rejects later. */
  #nodeOf(func: number): number {
    const defined = func - this.#valid.importedFuncCount;
    return defined < 0 || defined >= this.#functions ? this.#outside : defined;
  }

  #scanBody(k: number): void {
    const { body } = this.#valid.funcs[k];
    const params = this.#valid.funcTypes[this.#valid.importedFuncCount + k].params.length;
    const reader = this.#reader;
    this.#start[k] = this.#count;
    reader.reset(body.bytes, 0, body.bytes.length, body.offset);
    this.#units[k] = ACTIVATION_UNITS + (params + reader.locals()) * LOCAL_UNITS;
    while (!reader.done) {
      const id = reader.next();
      if (id === REF_FUNC) this.#refer(reader.imm.index);
      const call = CALL_FORMS.get(id);
      if (call !== undefined) {
        this.#addEdge(call.isDirect ? this.#nodeOf(reader.imm.index) : this.#indirect, !call.isTail);
      }
    }
  }

  // ---- references ---------------------------------------------------------------------------------------------------

  #refer(func: number): void {
    if (func < this.#referenced.length) this.#referenced[func] = 1;
  }

  /** Finds the references that are made outside of bodies. */
  #findReferences(): void {
    const { elems, globals, tables } = this.#valid;
    for (const { init } of elems) {
      if (init.kind === "funcs") { for (const func of init.indices) this.#refer(func); }
      else for (const expr of init.exprs) this.#scanConstant(expr);
    }
    for (const { init } of globals) this.#scanConstant(init);
    for (const { init } of tables) if (init !== undefined) this.#scanConstant(init);
  }

  #scanConstant({ bytes, offset }: Expr): void {
    const reader = this.#reader;
    reader.reset(bytes, 0, bytes.length, offset);
    while (!reader.done) if (reader.next() === REF_FUNC) this.#refer(reader.imm.index);
  }

  #addReferenced(): void {
    this.#referenced.forEach((isReferenced, func) => {
      if (isReferenced === 1) this.#addEdge(this.#nodeOf(func), false);
    });
    if (receivesReferences(this.#valid)) this.#addEdge(this.#outside, true);
  }

  // ---- cycles -------------------------------------------------------------------------------------------------------

  /**
   * Strongly connected components by Tarjan's algorithm, iterative because call chains may be long. A component is
   * complete when all that it reaches are.
   */
  counted(): Uint8Array {
    const nodes = this.#functions + 2;
    const counted = new Uint8Array(nodes);
    const path = new Float64Array(nodes);
    const number = new Int32Array(nodes);
    const low = new Int32Array(nodes);
    /** By node: its component, 0 for none yet. */
    const component = new Int32Array(nodes);
    const next = this.#start.slice();
    const open: number[] = [];
    const calls: number[] = [];
    let numbered = 0, components = 0;
    const enter = (node: number) => {
      number[node] = low[node] = ++numbered;
      open.push(node);
      calls.push(node);
    };
    const complete = (root: number) => {
      const members = open.splice(open.lastIndexOf(root));
      components++;
      for (const member of members) component[member] = components;
      this.#decide(members, component, counted, path);
    };
    for (let root = 0; root < nodes; root++) {
      if (number[root] !== 0) continue;
      enter(root);
      while (calls.length > 0) {
        const node = calls[calls.length - 1];
        if (next[node] < this.#start[node + 1]) {
          const to = this.#edges[next[node]++] >> 1;
          if (number[to] === 0) enter(to);
          else if (component[to] === 0) low[node] = Math.min(low[node], number[to]);
          continue;
        }
        calls.pop();
        const caller = calls[calls.length - 1];
        if (caller !== undefined) low[caller] = Math.min(low[caller], low[node]);
        if (low[node] === number[node]) complete(node);
      }
    }
    return counted.subarray(0, this.#functions);
  }

  /** Decides whether the component `members` counts, and the units of its longest chain of calls. */
  #decide(members: readonly number[], component: Int32Array, counted: Uint8Array, path: Float64Array): void {
    let counts = false;
    let own = 0, callees = 0;
    for (const member of members) {
      own = Math.max(own, this.#units[member]);
      for (let e = this.#start[member]; e < this.#start[member + 1]; e++) {
        const to = this.#edges[e] >> 1;
        if (component[to] === component[member]) counts ||= (this.#edges[e] & 1) === 1;
        else {
          counts ||= counted[to] === 1;
          callees = Math.max(callees, path[to]);
        }
      }
    }
    counts ||= own + callees > MAX_UNCOUNTED;
    for (const member of members) {
      path[member] = own + callees;
      counted[member] = counts ? 1 : 0;
    }
  }
}

/** Whether the host can pass references to the module: functions of other instances, or the module's exports. */
function receivesReferences(valid: ValidModule): boolean {
  const { imports, exports, globalTypes, funcTypes, tagTypes } = valid;
  const importedKinds = new Set(imports.map(({ desc }) => desc.kind));
  const passes = (types: FuncType["params"]) => types.some(isRef);
  // A tag has results if a suspended computation receives them.
  const passesOne = ({ params, results }: FuncType) => passes(params) || passes(results);
  return importedKinds.has("table") || exports.some(({ kind }) => kind === "table") ||
    globalTypes.some(({ type }, k) => isRef(type) && k < valid.importedGlobalCount) ||
    exports.some(({ kind, index }) => kind === "global" && isRef(globalTypes[index].type)) ||
    funcTypes.some(({ results }, k) => k < valid.importedFuncCount && passes(results)) ||
    exports.some(({ kind, index }) => kind === "func" && passes(funcTypes[index].params)) ||
    tagTypes.some((type, k) => k < valid.importedTagCount && passesOne(type)) ||
    exports.some(({ kind, index }) => kind === "tag" && passesOne(tagTypes[index]));
}
