/**
 * Parses the text that ir/print.ts writes, for goldens and tests of passes. In: text. Out: an IrFunction (a given one,
 * reset, or a new one) with the same value ids, blocks in the text's order, edges in the order of their first mention.
 *
 * `;` begins a comment; blank lines are skipped. Only the syntax is checked (ir/verify.ts checks the rest); an error
 * names the line. Value numbers are kept, so gaps in the columns are UNDEF and instructions without a result come last.
 */
import { grown } from "../base/columns.ts";
import { BUILTIN_ROWS } from "../abi/builtins.ts";
import { MalformedError } from "../base/errors.ts";
import { BLOCK_COLD, BLOCK_LOOP, IrFunction } from "./function.ts";
import { atomicWord, boundsWord, CLASS_CONSTANT, CLASS_SIZES, region } from "./regions.ts";
import { CALL_OWN, CHARGE_OWES, OP, OP_HAS_LIST, OP_VALUE_MASK, type OpName } from "./ops.ts";
import { DIVIDE_FLAGS, HINT_NAMES, isAccess, isAtomic, REGION_NAMES, TRAP_NAMES } from "./print.ts";
import { type Signature, TY, TY_NAMES } from "./types.ts";

const TOKEN = /-?0x[0-9a-f]+|[A-Za-z_][\w.]*|-?\d+|->|[()[\]:=+#@/]/gy;
/** The largest value number a text may use. */
const MAX_VALUE = 1 << 22;

/** Parses one function. */
export function parseFunction(text: string, f: IrFunction = new IrFunction()): IrFunction {
  const parser = new FunctionParser(f, text.split("\n"));
  parser.parse();
  return f;
}

class FunctionParser {
  readonly #f: IrFunction;
  readonly #lines: readonly string[];
  #line = 0;
  #tokens: string[] = [];
  #next = 0;
  /** Signatures by id; unmentioned ids are empty. */
  readonly #signatures: Signature[] = [];
  /** Whether the text has a `layout` line. */
  #hasLayout = false;

  constructor(f: IrFunction, lines: readonly string[]) {
    this.#f = f;
    this.#lines = lines;
  }

  parse(): void {
    const f = this.#f;
    let highest = 0;
    for (const line of this.#lines) {
      for (const match of line.matchAll(/\bv(\d+):/g)) highest = Math.max(highest, Number(match[1]));
    }
    if (highest > MAX_VALUE) throw new MalformedError(`value number ${highest} is too large`);
    f.reset(highest + this.#lines.length + 1);
    for (let i = 1; i <= highest; i++) f.append(OP.UNDEF, TY.NONE, 0, 0, 0, 0);
    f.inlineSites.push({ parent: 0, callPos: 0, funcIndex: 0 });
    for (this.#line = 0; this.#line < this.#lines.length; this.#line++) {
      this.#tokenize(this.#lines[this.#line].replace(/;.*/, ""));
      if (this.#tokens.length > 0) this.#parseLine();
    }
    if (f.blockCount === 0) throw this.#error("the function has no blocks");
    f.blockEnd[f.blockCount - 1] = f.schedCount;
    f.signatures = this.#signatures;
  }

  #error(message: string): MalformedError {
    return new MalformedError(message, { line: this.#line + 1 });
  }

  #tokenize(line: string): void {
    this.#tokens = [];
    this.#next = 0;
    TOKEN.lastIndex = 0;
    let at = 0;
    while (at < line.length) {
      if (line[at] === " " || line[at] === "\t" || line[at] === "\r") {
        at++;
        continue;
      }
      TOKEN.lastIndex = at;
      const match = TOKEN.exec(line);
      if (match === null) throw this.#error(`unexpected character "${line[at]}"`);
      this.#tokens.push(match[0]);
      at = TOKEN.lastIndex;
    }
  }

  #peek(): string {
    return this.#tokens[this.#next] ?? "";
  }

  #take(): string {
    return this.#tokens[this.#next++] ?? "";
  }

  #accept(token: string): boolean {
    if (this.#peek() !== token) return false;
    this.#next++;
    return true;
  }

  #expect(token: string): void {
    if (!this.#accept(token)) throw this.#error(`expected "${token}", found "${this.#peek()}"`);
  }

  #integer(): number {
    const token = this.#take();
    const value = Number(token);
    if (token === "" || !Number.isInteger(value)) throw this.#error(`expected a number, found "${token}"`);
    return value;
  }

  /** A number after a prefix: v12, b3, f4, sig5. */
  #numbered(prefix: string): number {
    const token = this.#take();
    const digits = token.slice(prefix.length);
    if (!token.startsWith(prefix) || !/^\d+$/.test(digits)) {
      throw this.#error(`expected ${prefix} and a number, found "${token}"`);
    }
    return Number(digits);
  }

  #keyed(key: string): number {
    this.#expect(key);
    this.#expect("=");
    return this.#integer();
  }

  #type(): number {
    const token = this.#take();
    const ty = TY_NAMES.indexOf(token as (typeof TY_NAMES)[number]);
    if (ty < 0) throw this.#error(`unknown type "${token}"`);
    return ty;
  }

  #word(names: readonly string[], kind: string): number {
    const token = this.#take();
    const index = names.indexOf(token);
    if (index < 0) throw this.#error(`unknown ${kind} "${token}"`);
    return index;
  }

  #signature(): Signature {
    const types = () => {
      const list: number[] = [];
      this.#expect("(");
      while (!this.#accept(")")) list.push(this.#type());
      return Uint8Array.from(list);
    };
    const params = types();
    this.#expect("->");
    return { params, results: types() };
  }

  #parseLine(): void {
    const f = this.#f;
    const first = this.#peek();
    if (first === "func") {
      this.#next++;
      f.funcIndex = this.#integer();
      f.signature = this.#signature();
    } else if (first === "sig") {
      this.#next++;
      const id = this.#integer();
      const empty = new Uint8Array(0);
      while (this.#signatures.length <= id) this.#signatures.push({ params: empty, results: empty });
      this.#signatures[id] = this.#signature();
    } else if (first === "site") {
      this.#next++;
      if (this.#integer() !== f.inlineSites.length) throw this.#error("sites are numbered from 1 in order");
      f.inlineSites.push({
        parent: this.#keyed("parent"),
        callPos: this.#keyed("call"),
        funcIndex: this.#keyed("func"),
      });
    } else if (first === "layout") {
      this.#next++;
      for (let n = 0; this.#peek() !== ""; n++) {
        if (n >= f.layout.length) f.layout = Int32Array.from({ length: n * 2 }, (_, k) => f.layout[k] ?? k);
        f.layout[n] = this.#numbered("b");
      }
      this.#hasLayout = true;
    } else if (/^b\d+$/.test(first)) {
      this.#parseBlock();
    } else {
      this.#parseInstruction();
    }
    if (this.#next < this.#tokens.length) throw this.#error(`unexpected "${this.#peek()}"`);
  }

  #parseBlock(): void {
    const f = this.#f;
    const number = this.#numbered("b");
    if (number !== f.blockCount) throw this.#error(`expected block b${f.blockCount}`);
    if (number > 0) f.blockEnd[number - 1] = f.schedCount;
    const placed = f.layout[number];
    f.addBlock(0, 0);
    if (this.#hasLayout && placed !== undefined) f.layout[number] = placed;
    f.blockStart[number] = f.schedCount;
    this.#expect("(");
    let count = 0;
    while (!this.#accept(")")) {
      const id = this.#numbered("v");
      this.#expect(":");
      this.#define(id, OP.PARAM, this.#type());
      f.imm[id] = count++;
    }
    f.blockParams[number] = count;
    while (!this.#accept(":")) {
      const token = this.#take();
      if (token === "loop") f.blockFlags[number] |= BLOCK_LOOP;
      else if (token === "cold") f.blockFlags[number] |= BLOCK_COLD;
      else if (token === "depth") {
        this.#expect("=");
        f.blockDepth[number] = this.#integer();
      } else throw this.#error(`unknown block flag "${token}"`);
    }
  }

  #define(id: number, op: number, ty: number): void {
    const f = this.#f;
    if (id === 0 || f.op[id] !== OP.UNDEF) throw this.#error(`v${id} is defined twice`);
    f.op[id] = op;
    f.ty[id] = ty;
    f.sched[f.schedCount++] = id;
  }

  #parseInstruction(): void {
    const f = this.#f;
    if (f.blockCount === 0) throw this.#error(`expected a block, found "${this.#peek()}"`);
    let id: number;
    let ty: number = TY.NONE;
    if (/^v\d+$/.test(this.#peek())) {
      id = this.#numbered("v");
      this.#expect(":");
      ty = this.#type();
      this.#expect("=");
    } else {
      id = f.append(OP.UNDEF, TY.NONE, 0, 0, 0, 0);
    }
    const name = this.#take();
    const op = OP[name as OpName];
    if (op === undefined) throw this.#error(`unknown operation "${name}"`);
    this.#define(id, op, ty);
    this.#parseOperands(id, op);
    if (this.#accept("@")) {
      f.pos[id] = this.#integer();
      if (this.#accept("/")) f.site[id] = this.#integer();
    }
  }

  #parseOperands(i: number, op: number): void {
    const f = this.#f;
    if (op === OP.CONST) return this.#parseConstant(i);
    if (isAccess(op)) return this.#parseAccess(i, op);
    if (isAtomic(op)) return this.#parseAtomic(i, op);
    if (op === OP.BOUNDS) {
      const memory = this.#numbered("memory");
      this.#parseAddress(i);
      f.c[i] = boundsWord(memory, this.#integer());
      return;
    }
    if (OP_HAS_LIST[op]) return this.#parseCall(i, op);
    switch (op) {
      case OP.JUMP:
        f.a[i] = this.#edge();
        return;
      case OP.BRANCH:
        f.a[i] = this.#numbered("v");
        f.b[i] = this.#edge();
        f.c[i] = this.#edge();
        if (this.#peek() !== "" && this.#peek() !== "@") f.imm[i] = this.#word(HINT_NAMES, "hint");
        return;
      case OP.SWITCH: {
        f.a[i] = this.#numbered("v");
        f.b[i] = f.edgeCount;
        let count = 0;
        while (this.#peek().startsWith("b")) {
          this.#edge();
          count++;
        }
        f.c[i] = count;
        return;
      }
      case OP.TRAP:
        f.imm[i] = this.#word(TRAP_NAMES, "trap");
        return;
      case OP.TRAP_IF:
        f.a[i] = this.#numbered("v");
        f.imm[i] = this.#word(TRAP_NAMES, "trap");
        return;
      case OP.CHECK_INDEX:
        f.a[i] = this.#numbered("v");
        if (this.#accept("+")) f.c[i] = this.#integer();
        f.b[i] = this.#numbered("v");
        f.imm[i] = this.#word(TRAP_NAMES, "trap");
        return;
      case OP.CHARGE:
        f.a[i] = this.#numbered("v");
        if (this.#accept("after")) f.b[i] = this.#integer();
        if (this.#accept("owes")) f.imm[i] = CHARGE_OWES;
        return;
      case OP.RESULT:
        f.a[i] = this.#numbered("v");
        f.imm[i] = this.#integer();
        return;
      case OP.CONTEXT:
        this.#expect("+");
        f.imm[i] = this.#integer() | 0;
        return;
      case OP.PARAM:
        throw this.#error("parameters belong in the head of their block");
    }
    const mask = OP_VALUE_MASK[op];
    if (mask & 1) f.a[i] = this.#numbered("v");
    if (mask & 2) f.b[i] = this.#numbered("v");
    if (mask & 4) f.c[i] = this.#numbered("v");
    if (op >= OP.DIV_S && op <= OP.REM_U) {
      while (this.#peek() !== "" && this.#peek() !== "@") f.imm[i] |= 1 << this.#word(DIVIDE_FLAGS, "division flag");
    } else if (this.#accept("#")) {
      f.imm[i] = this.#integer();
    }
  }

  #parseConstant(i: number): void {
    const f = this.#f;
    const token = this.#take();
    const ty = f.ty[i];
    if (ty === TY.REF && token === "null") return;
    if (!/^(-?\d+|0x[0-9a-f]+)$/.test(token)) throw this.#error(`expected a constant, found "${token}"`);
    if (ty === TY.V128) {
      if (token.length !== 34) throw this.#error("a v128 constant has 32 hexadecimal digits");
      const index = f.vectorCount++;
      if (f.vectors.length < f.vectorCount * 16) f.vectors = grown(f.vectors, f.vectorCount * 32);
      for (let n = 0; n < 16; n++) f.vectors[index * 16 + n] = parseInt(token.slice(2 + n * 2, 4 + n * 2), 16);
      f.imm[i] = index;
      return;
    }
    const bits = BigInt(token);
    f.imm[i] = Number(BigInt.asIntN(32, bits));
    if (ty === TY.I64 || ty === TY.F64) f.c[i] = Number(BigInt.asIntN(32, bits >> 32n));
  }

  #parseAddress(i: number): void {
    const f = this.#f;
    this.#expect("[");
    if (this.#peek().startsWith("v")) {
      f.a[i] = this.#numbered("v");
      if (this.#accept("+")) f.imm[i] = this.#integer() | 0;
    } else {
      f.imm[i] = this.#integer() | 0;
    }
    this.#expect("]");
  }

  #parseRegion(i: number): void {
    const f = this.#f;
    const [kindName, className] = this.#take().split(".");
    const kind = REGION_NAMES.indexOf(kindName as (typeof REGION_NAMES)[number]);
    if (kind < 0) throw this.#error(`unknown region "${kindName}"`);
    let aliasClass = 0;
    if (className === "const") aliasClass = CLASS_CONSTANT;
    else if (className === "sizes") aliasClass = CLASS_SIZES;
    else if (className !== undefined) aliasClass = Number(className);
    if (!Number.isInteger(aliasClass)) throw this.#error(`unknown alias class "${className}"`);
    f.c[i] = region(kind, aliasClass);
    this.#parseAddress(i);
  }

  #parseAtomic(i: number, op: number): void {
    const f = this.#f;
    this.#parseRegion(i);
    const bytes = this.#integer();
    const width = [1, 2, 4, 8].indexOf(bytes);
    if (width < 0) throw this.#error(`no atomic access has ${bytes} bytes`);
    f.c[i] = atomicWord(f.c[i], width);
    if (op === OP.ATOMIC_LOAD) return;
    const value = this.#numbered("v");
    if (op !== OP.ATOMIC_CMPXCHG) {
      f.b[i] = value;
      return;
    }
    const first = f.allocPool(3);
    f.pool[first] = f.a[i];
    f.pool[first + 1] = value;
    f.pool[first + 2] = this.#numbered("v");
    f.a[i] = first;
    f.b[i] = 3;
  }

  #parseAccess(i: number, op: number): void {
    const f = this.#f;
    this.#parseRegion(i);
    if (op >= OP.STORE) f.b[i] = this.#numbered("v");
    else if (this.#peek() !== "" && this.#peek() !== "@") f.b[i] = this.#word(TRAP_NAMES, "trap");
  }

  #parseCall(i: number, op: number): void {
    const f = this.#f;
    const record = op === OP.CALL_RECORD || op === OP.TAIL_CALL_RECORD;
    if (op === OP.CALL_BUILTIN) f.c[i] = this.#word(BUILTIN_ROWS.map((row) => row.name), "builtin");
    else if (!record && op !== OP.RETURN) f.c[i] = this.#numbered("f");
    const list = this.#list();
    f.a[i] = list.first;
    f.b[i] = list.count;
    if (op === OP.RETURN) return;
    f.imm[i] = this.#numbered("sig");
    if (!record) return;
    const own = this.#accept("own") ? CALL_OWN : 0;
    f.c[i] = own | (this.#peek() !== "" && this.#peek() !== "@" ? this.#word(TRAP_NAMES, "trap") : 0);
  }

  #list(): { first: number; count: number } {
    const values: number[] = [];
    this.#expect("(");
    while (!this.#accept(")")) values.push(this.#numbered("v"));
    const first = this.#f.allocPool(values.length);
    values.forEach((value, n) => this.#f.pool[first + n] = value);
    return { first, count: values.length };
  }

  #edge(): number {
    const to = this.#numbered("b");
    return this.#f.addEdge(this.#f.blockCount - 1, to, this.#list().first);
  }
}
