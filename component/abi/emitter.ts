/**
 * Generates the JavaScript source that lifts and lowers values of given types (Canonical ABI: Loading, Storing, Flat
 * Lifting, Flat Lowering). In: resolved types and the type of pointers. Out: statements and expressions over the names
 * of {@linkcode Runtime}. A type in memory becomes one function, which is shared by all its occurrences, so the source
 * grows with the number of distinct types and nothing is interpreted per value.
 *
 * Invariant: source text contains nothing of the component but names of WIT, quoted, and numbers.
 */
import type { ValType } from "../model/types.ts";
import { ELEMENTS_PER_CHECK } from "./guest_memory.ts";
import {
  casesOf,
  type CoreType,
  discriminantBytes,
  fieldOffsets,
  flagsBytes,
  flatten,
  layoutOf,
  liftCost,
  payloadOffset,
  pointerBytes,
  type PointerType,
} from "./layout.ts";
import { camelCase } from "./names.ts";

/** Loads and stores of the types that occupy a fixed number of bytes: load, store of `v`. `m` is the memory. */
const WORDS: Readonly<Record<string, readonly [string, string]>> = {
  bool: ["m.u8[@] !== 0", "m.u8[@] = v ? 1 : 0"],
  s8: ["m.view.getInt8(@)", "m.view.setInt8(@, v)"],
  u8: ["m.u8[@]", "m.u8[@] = v"],
  s16: ["m.view.getInt16(@, true)", "m.view.setInt16(@, v, true)"],
  u16: ["m.view.getUint16(@, true)", "m.view.setUint16(@, v, true)"],
  s32: ["m.view.getInt32(@, true)", "m.view.setInt32(@, v, true)"],
  u32: ["m.view.getUint32(@, true)", "m.view.setUint32(@, v, true)"],
  s64: ["m.view.getBigInt64(@, true)", "m.view.setBigInt64(@, BigInt(v), true)"],
  u64: ["m.view.getBigUint64(@, true)", "m.view.setBigUint64(@, BigInt(v), true)"],
  f32: ["m.view.getFloat32(@, true)", "m.view.setFloat32(@, v, true)"],
  f64: ["m.view.getFloat64(@, true)", "m.view.setFloat64(@, v, true)"],
  char: ["char(m.view.getUint32(@, true))", "m.view.setUint32(@, codePoint(v), true)"],
};

/** Flat values: lifting `x`, lowering `v`. Lowered 32-bit values may be unsigned; the engine wraps them. */
const FLAT_WORDS: Readonly<Record<string, readonly [string, string]>> = {
  bool: ["x !== 0", "(v ? 1 : 0)"],
  s8: ["x << 24 >> 24", "v << 24 >> 24"],
  u8: ["x & 255", "v & 255"],
  s16: ["x << 16 >> 16", "v << 16 >> 16"],
  u16: ["x & 65535", "v & 65535"],
  s32: ["x", "v | 0"],
  u32: ["x >>> 0", "v | 0"],
  s64: ["x", "BigInt.asIntN(64, BigInt(v))"],
  u64: ["BigInt.asUintN(64, x)", "BigInt.asIntN(64, BigInt(v))"],
  f32: ["x", "Math.fround(v)"],
  f64: ["x", "+v"],
  char: ["char(x >>> 0)", "codePoint(v)"],
};

/** The typed arrays of lists, by the kind of their elements; lists of other elements are arrays. */
export const TYPED_ARRAYS: Readonly<Record<string, string>> = {
  s8: "Int8Array",
  u8: "Uint8Array",
  s16: "Int16Array",
  u16: "Uint16Array",
  s32: "Int32Array",
  u32: "Uint32Array",
  s64: "BigInt64Array",
  u64: "BigUint64Array",
  f32: "Float32Array",
  f64: "Float64Array",
};

/** Coercion of a lifted flat value from the joined type of a variant to the type of the case, and back. */
const COERCIONS: Readonly<Record<string, readonly [string, string]>> = {
  "i32 f32": ["bitsToF32(x)", "f32ToBits(v)"],
  "i64 i32": ["Number(BigInt.asIntN(32, x))", "BigInt.asUintN(32, BigInt(v))"],
  "i64 f32": ["bitsToF32(Number(BigInt.asIntN(32, x)))", "BigInt.asUintN(32, BigInt(f32ToBits(v)))"],
  "i64 f64": ["bitsToF64(x)", "f64ToBits(v)"],
};

const q = JSON.stringify;

/** Puts the expression `value` in place of the identifier `name` in a template. */
function fill(template: string, name: "v" | "x", value: string): string {
  const simple = /^[\w.]+$/.test(value);
  return template.replace(name === "v" ? /\bv\b/g : /\bx\b/g, () => simple ? value : `(${value})`);
}

/** Whether the source evaluates an operand more than once or must see it evaluated first. */
function isName(source: string): boolean {
  return /^\w+$/.test(source);
}

/** Whether values of `type` may be undefined or null, so that an option of it needs a tag. */
function isNullable(type: ValType): boolean {
  return type.kind === "option";
}

/** Emits the source for one pointer type. */
export class Emitter {
  readonly pointer: PointerType;
  /** Types of handles, streams and futures: `h[i]` is the codec of `handles[i]`. */
  readonly handles: ValType[] = [];
  readonly #functions: string[] = [];
  readonly #names = new Map<string, Map<ValType, string>>();
  #next = 0;

  constructor(pointer: PointerType) {
    this.pointer = pointer;
  }

  /** The functions that the emitted code uses. */
  get declarations(): string {
    return this.#functions.join("\n");
  }

  /** A new identifier. */
  fresh(prefix: string): string {
    return `${prefix}${this.#next++}`;
  }

  /** The function of kind `sort` for `type`, emitted by `body` on first use. */
  #function(sort: string, type: ValType, body: (name: string) => string): string {
    let names = this.#names.get(sort);
    if (names === undefined) this.#names.set(sort, names = new Map());
    let name = names.get(type);
    if (name === undefined) {
      names.set(type, name = this.fresh(sort));
      this.#functions.push(body(name));
    }
    return name;
  }

  #handle(type: ValType): string {
    let index = this.handles.indexOf(type);
    if (index < 0) index = this.handles.push(type) - 1;
    return `h[${index}]`;
  }

  #loadPointer(at: string): string {
    return this.pointer === "i32" ? `m.view.getUint32(${at}, true)` : `address(m.view.getBigUint64(${at}, true))`;
  }

  #loadUnits(at: string): string {
    return this.pointer === "i32"
      ? `units32(m.view.getUint32(${at}, true))`
      : `units64(m.view.getBigUint64(${at}, true))`;
  }

  #storePointer(at: string, value: string): string {
    return this.pointer === "i32"
      ? `m.view.setUint32(${at}, ${value}, true);`
      : `m.view.setBigUint64(${at}, BigInt(${value}), true);`;
  }

  /** A flat pointer as a number. */
  pointerIn(flat: string): string {
    return this.pointer === "i32" ? `${flat} >>> 0` : `address(${flat})`;
  }

  /** A number as a flat pointer. */
  pointerOut(value: string): string {
    return this.pointer === "i32" ? value : `BigInt(${value})`;
  }

  #unitsIn(flat: string): string {
    return this.pointer === "i32" ? `units32(${flat} >>> 0)` : `units64(BigInt.asUintN(64, ${flat}))`;
  }

  /** The tagged length of the string stored last. */
  #unitsOut(asFlat: boolean): string {
    return this.pointer === "i32" ? "tag32()" : asFlat ? "tag64()" : "tag64()";
  }

  #storeUnits(at: string): string {
    return this.pointer === "i32"
      ? `m.view.setUint32(${at}, tag32(), true);`
      : `m.view.setBigUint64(${at}, tag64(), true);`;
  }

  // Loading

  /** An expression for the value of `type` at `at`, an expression without effects. */
  load(type: ValType, at: string): string {
    const word = WORDS[type.kind];
    if (word !== undefined) return word[0].replaceAll("@", at);
    switch (type.kind) {
      case "string":
        return `text(${this.#loadPointer(at)}, ${this.#loadUnits(this.#after(at))})`;
      case "own":
      case "borrow":
      case "stream":
      case "future":
      case "error-context":
        return `${this.#handle(type)}.lift(m.view.getUint32(${at}, true))`;
      case "enum":
        return `${this.#enumName(type)}(${loadDiscriminant(type.names.length, at)})`;
      case "flags":
        return `${this.#flagsOf(type)}(${loadDiscriminantOf(flagsBytes(type.names.length), at)})`;
      default:
        return `${this.#function("load", type, (name) => this.#loader(name, type))}(${at})`;
    }
  }

  #after(at: string): string {
    return `${at} + ${pointerBytes(this.pointer)}`;
  }

  #loader(name: string, type: ValType): string {
    return `function ${name}(p) { ${this.#loadBody(type)} }`;
  }

  #loadBody(type: ValType): string {
    const part = (of: ValType, offset: number) => this.load(of, offset === 0 ? "p" : `p + ${offset}`);
    switch (type.kind) {
      case "list":
        if (type.length !== undefined) return `return ${this.#elements(type.element)}(p, ${type.length});`;
        return `return ${this.#range(type)}(${this.#loadPointer("p")}, ${this.#loadPointer(this.#after("p"))});`;
      case "map":
        return `return ${this.#range(type)}(${this.#loadPointer("p")}, ${this.#loadPointer(this.#after("p"))});`;
      case "record": {
        const offsets = fieldOffsets(type.fields.map((field) => field.type), this.pointer);
        return `return { ${
          type.fields.map((f, k) => `${q(camelCase(f.name))}: ${part(f.type, offsets[k])}`).join(", ")
        } };`;
      }
      case "tuple": {
        const offsets = fieldOffsets(type.types, this.pointer);
        return `return [${type.types.map((t, k) => part(t, offsets[k])).join(", ")}];`;
      }
      case "variant":
      case "option":
      case "result": {
        const cases = casesOf(type);
        const at = payloadOffset(cases, this.pointer);
        const arms = cases.map((c, k) => {
          const payload = c.type === undefined ? undefined : part(c.type, at);
          return `case ${k}: return ${caseValue(type, c.name, payload)};`;
        });
        return `switch (${loadDiscriminant(cases.length, "p")}) { ${arms.join(" ")} default: badCase(); }`;
      }
      default:
        throw new Error(`No loader for ${type.kind}`);
    }
  }

  #enumName(type: Extract<ValType, { kind: "enum" }>): string {
    return this.#function(
      "name",
      type,
      (name) => `const ${name}_names = ${q(type.names)}; function ${name}(x) { return ${name}_names[x] ?? badCase(); }`,
    );
  }

  #flagsOf(type: Extract<ValType, { kind: "flags" }>): string {
    const fields = type.names.map((label, k) => `${q(camelCase(label))}: (x & ${(1 << k) | 0}) !== 0`);
    return this.#function("flags", type, (name) => `function ${name}(x) { return { ${fields.join(", ")} }; }`);
  }

  /** The function that loads the elements of a list from a range that it checks. */
  #range(type: Extract<ValType, { kind: "list" | "map" }>): string {
    const element = this.elementOf(type);
    const { size, align } = layoutOf(element, this.pointer);
    const cost = liftCost(element);
    const result = `${this.#elements(element)}(p, n)`;
    const value = type.kind === "map" ? `toMap(${result})` : result;
    return this.#function(
      "range",
      type,
      (name) => `function ${name}(p, n) { m.refresh(); checkList(p, n, ${size}, ${align}, ${cost}); return ${value}; }`,
    );
  }

  readonly #entries = new Map<ValType, ValType>();

  /** The type of the elements of a list, or of the entries of a map. */
  elementOf(type: Extract<ValType, { kind: "list" | "map" }>): ValType {
    if (type.kind === "list") return type.element;
    let entry = this.#entries.get(type);
    if (entry === undefined) this.#entries.set(type, entry = { kind: "tuple", types: [type.key, type.value] });
    return entry;
  }

  /** The function that loads `n` elements from a valid range. */
  #elements(element: ValType): string {
    const { size } = layoutOf(element, this.pointer);
    const array = TYPED_ARRAYS[element.kind];
    if (array === "Uint8Array") {
      return this.#function("items", element, (name) => `function ${name}(p, n) { return m.copy(p, n); }`);
    }
    if (array !== undefined) {
      return this.#function(
        "items",
        element,
        (name) => `function ${name}(p, n) { return new ${array}(m.copy(p, n * ${size}).buffer); }`,
      );
    }
    const load = this.load(element, "p");
    return this.#function(
      "items",
      element,
      (name) =>
        `function ${name}(p, n) { const a = new Array(n); for (let k = 0; k < n;) {
  const end = Math.min(k + ${ELEMENTS_PER_CHECK}, n); m.spend((end - k) * ${liftCost(element)});
  for (; k < end; k++, p += ${size}) a[k] = ${load}; } return a; }`,
    );
  }

  /** The functions that load and store `n` elements of a list in a valid range. */
  elementFunctions(type: Extract<ValType, { kind: "list" }>): { load: string; store: string } {
    return { load: this.#elements(type.element), store: this.#writer(type.element) };
  }

  // Storing

  /** A statement that stores the value of the expression `value` at `at`, an expression without effects. */
  store(type: ValType, value: string, at: string): string {
    const word = WORDS[type.kind];
    if (word !== undefined) return `${fill(word[1], "v", value).replaceAll("@", at)};`;
    switch (type.kind) {
      case "string": {
        const pointer = this.fresh("s");
        return `const ${pointer} = storeText(${value}); ${this.#storePointer(at, pointer)} ${
          this.#storeUnits(this.#after(at))
        }`;
      }
      case "own":
      case "borrow":
      case "stream":
      case "future":
      case "error-context": {
        const handle = this.fresh("s");
        return `const ${handle} = ${this.#handle(type)}.lower(${value}); m.view.setUint32(${at}, ${handle}, true);`;
      }
      case "enum":
        return storeDiscriminant(type.names.length, at, `${this.#enumIndex(type)}(${value})`);
      case "flags":
        return storeWord(flagsBytes(type.names.length), at, `${this.#flagBits(type)}(${value})`);
      default:
        return `${this.#function("store", type, (name) => this.#storer(name, type))}(${value}, ${at});`;
    }
  }

  #storer(name: string, type: ValType): string {
    return `function ${name}(v, p) { ${this.#storeBody(type)} }`;
  }

  #storeBody(type: ValType): string {
    const part = (of: ValType, value: string, offset: number) =>
      this.store(of, value, offset === 0 ? "p" : `p + ${offset}`);
    switch (type.kind) {
      case "list":
        if (type.length !== undefined) {
          return `checkCount(v, ${type.length}); ${this.#writer(type.element)}(v, p, ${type.length});`;
        }
        return this.#storeRange(type);
      case "map":
        return this.#storeRange(type);
      case "record": {
        const offsets = fieldOffsets(type.fields.map((field) => field.type), this.pointer);
        return type.fields.map((f, k) => part(f.type, `v.${camelCase(f.name)}`, offsets[k])).join(" ");
      }
      case "tuple": {
        const offsets = fieldOffsets(type.types, this.pointer);
        return type.types.map((t, k) => part(t, `v[${k}]`, offsets[k])).join(" ");
      }
      case "variant":
      case "option":
      case "result": {
        const cases = casesOf(type);
        const at = payloadOffset(cases, this.pointer);
        return this.#switch(type, "v", (k, payload) => {
          const set = storeDiscriminant(cases.length, "p", String(k));
          const { type: of } = cases[k];
          return of === undefined ? set : `${set} { ${part(of, payload, at)} }`;
        });
      }
      default:
        throw new Error(`No storer for ${type.kind}`);
    }
  }

  #storeRange(type: Extract<ValType, { kind: "list" | "map" }>): string {
    return `const a = ${this.#writeRange(type)}(v); ${this.#storePointer("p", "a")} ${
      this.#storePointer(this.#after("p"), "count")
    }`;
  }

  /** The function that stores a list; it returns the pointer and leaves the number of elements in `count`. */
  #writeRange(type: Extract<ValType, { kind: "list" | "map" }>): string {
    const element = this.elementOf(type);
    const { size, align } = layoutOf(element, this.pointer);
    const values = type.kind === "map" ? "entriesOf(v)" : "listOf(v)";
    return this.#function(
      "write",
      type,
      (name) =>
        `function ${name}(v) { v = ${values}; const n = v.length; checkBytes(n * ${size}); const p = m.allocate(${align}, n * ${size});
  ${this.#writer(element)}(v, p, n); count = n; return p; }`,
    );
  }

  /** The function that stores `n` elements in a valid range. */
  #writer(element: ValType): string {
    const { size } = layoutOf(element, this.pointer);
    const array = TYPED_ARRAYS[element.kind];
    const loop = `for (let k = 0; k < n;) {
  const end = Math.min(k + ${ELEMENTS_PER_CHECK}, n); m.checkTime((end - k) * ${liftCost(element)});
  for (; k < end; k++, p += ${size}) { ${this.store(element, "v[k]", "p")} } }`;
    const fast = array === undefined
      ? ""
      : `if (v instanceof ${array}) { m.write(new Uint8Array(v.buffer, v.byteOffset, v.byteLength), p); return; } `;
    return this.#function("each", element, (name) => `function ${name}(v, p, n) { ${fast}${loop} }`);
  }

  #enumIndex(type: Extract<ValType, { kind: "enum" }>): string {
    return this.#function(
      "index",
      type,
      (name) =>
        `const ${name}_of = new Map(${q(type.names.map((label, k) => [label, k]))});
function ${name}(v) { const k = ${name}_of.get(v); if (k === undefined) badTag(v, ${q(type.names)}); return k; }`,
    );
  }

  #flagBits(type: Extract<ValType, { kind: "flags" }>): string {
    const bits = type.names.map((label, k) => `(v.${camelCase(label)} ? ${(1 << k) | 0} : 0)`);
    return this.#function(
      "bits",
      type,
      (name) => `function ${name}(v) { if (v === undefined || v === null) return 0; return ${bits.join(" | ")}; }`,
    );
  }

  /** A switch over the cases of `value`, a name; `arm` gets the index of the case and the expression of its payload. */
  #switch(
    type: Extract<ValType, { kind: "variant" | "option" | "result" | "enum" }>,
    value: string,
    arm: (index: number, payload: string) => string,
  ): string {
    if (type.kind === "option" && !isNullable(type.type)) {
      return `if (${value} === undefined || ${value} === null) { ${arm(0, "undefined")} } else { ${arm(1, value)} }`;
    }
    const cases = casesOf(type);
    const tags = cases.map((c) => tagOf(type, c.name));
    const tag = type.kind === "enum" ? value : `${value}.tag`;
    const arms = tags.map((name, k) => `case ${q(name)}: { ${arm(k, `${value}.val`)} break; }`);
    return `switch (${tag}) { ${arms.join(" ")} default: badTag(${tag}, ${q(tags)}); }`;
  }

  // Flat values

  /** An expression for a value of `type` from flat values, which `next` yields as names; `out` gets statements. */
  liftFlat(type: ValType, next: () => string, out: string[]): string {
    const word = FLAT_WORDS[type.kind];
    if (type.kind === "char") return this.#named(fill(word[0], "x", next()), out);
    if (word !== undefined) return fill(word[0], "x", next());
    switch (type.kind) {
      case "string":
        return this.#named(`text(${this.pointerIn(next())}, ${this.#unitsIn(next())})`, out);
      case "list": {
        if (type.length === undefined) return this.#liftRange(type, next, out);
        const parts = Array.from({ length: type.length }, () => this.liftFlat(type.element, next, out));
        const array = TYPED_ARRAYS[type.element.kind];
        return array === undefined ? `[${parts.join(", ")}]` : `${array}.of(${parts.join(", ")})`;
      }
      case "map":
        return this.#liftRange(type, next, out);
      case "record":
        return `{ ${
          type.fields.map((f) => `${q(camelCase(f.name))}: ${this.liftFlat(f.type, next, out)}`).join(", ")
        } }`;
      case "tuple":
        return `[${type.types.map((t) => this.liftFlat(t, next, out)).join(", ")}]`;
      case "flags":
        return `${this.#flagsOf(type)}(${next()})`;
      case "enum":
        return this.#named(`${this.#enumName(type)}(${next()} >>> 0)`, out);
      case "variant":
      case "option":
      case "result":
        return this.#liftVariant(type, next, out);
      default:
        return this.#named(`${this.#handle(type)}.lift(${next()} >>> 0)`, out);
    }
  }

  /** Evaluates an expression that may trap now, so that the order of effects is that of the fields. */
  #named(expression: string, out: string[]): string {
    const name = this.fresh("v");
    out.push(`const ${name} = ${expression};`);
    return name;
  }

  #liftRange(type: Extract<ValType, { kind: "list" | "map" }>, next: () => string, out: string[]): string {
    const pointer = this.pointerIn(next());
    return this.#named(`${this.#range(type)}(${pointer}, ${this.pointerIn(next())})`, out);
  }

  #liftVariant(
    type: Extract<ValType, { kind: "variant" | "option" | "result" }>,
    next: () => string,
    out: string[],
  ): string {
    const cases = casesOf(type);
    const joined = this.#flat(type).slice(1);
    const discriminant = next();
    const names = joined.map(() => next());
    const value = this.fresh("v");
    const arms = cases.map((c, k) => {
      const inner: string[] = [];
      let payload: string | undefined;
      if (c.type !== undefined) {
        const wanted = this.#flat(c.type);
        let at = 0;
        payload = this.liftFlat(c.type, () => {
          const k = at++;
          return this.#named(coerceIn(joined[k], wanted[k], names[k]), inner);
        }, inner);
      }
      return `case ${k}: { ${inner.join(" ")} ${value} = ${caseValue(type, c.name, payload)}; break; }`;
    });
    out.push(`let ${value}; switch (${discriminant}) { ${arms.join(" ")} default: badCase(); }`);
    return value;
  }

  #flat(type: ValType): CoreType[] {
    return flatten(type, this.pointer)!;
  }

  /** Lowers `value`, a name or a property of one, to flat values; returns their expressions. */
  lowerFlat(type: ValType, value: string, out: string[]): string[] {
    const word = FLAT_WORDS[type.kind];
    if (word !== undefined) return [this.#named(fill(word[1], "v", value), out)];
    switch (type.kind) {
      case "string": {
        const pointer = this.#named(`storeText(${value})`, out);
        return [this.pointerOut(pointer), this.#named(this.#unitsOut(true), out)];
      }
      case "list":
        if (type.length !== undefined) {
          const list = this.#nameOf(value, out);
          out.push(`checkCount(${list}, ${type.length});`);
          return Array.from({ length: type.length }, (_, k) => this.lowerFlat(type.element, `${list}[${k}]`, out))
            .flat();
        }
        return this.#lowerRange(type, value, out);
      case "map":
        return this.#lowerRange(type, value, out);
      case "record": {
        const record = this.#nameOf(value, out);
        return type.fields.flatMap((f) => this.lowerFlat(f.type, `${record}.${camelCase(f.name)}`, out));
      }
      case "tuple": {
        const tuple = this.#nameOf(value, out);
        return type.types.flatMap((t, k) => this.lowerFlat(t, `${tuple}[${k}]`, out));
      }
      case "flags":
        return [this.#named(`${this.#flagBits(type)}(${value})`, out)];
      case "enum":
        return [this.#named(`${this.#enumIndex(type)}(${value})`, out)];
      case "variant":
      case "option":
      case "result":
        return this.#lowerVariant(type, this.#nameOf(value, out), out);
      default:
        return [this.#named(`${this.#handle(type)}.lower(${value})`, out)];
    }
  }

  #nameOf(value: string, out: string[]): string {
    return isName(value) ? value : this.#named(value, out);
  }

  #lowerRange(type: Extract<ValType, { kind: "list" | "map" }>, value: string, out: string[]): string[] {
    const pointer = this.#named(`${this.#writeRange(type)}(${value})`, out);
    return [this.pointerOut(pointer), this.pointerOut(this.#named("count", out))];
  }

  #lowerVariant(
    type: Extract<ValType, { kind: "variant" | "option" | "result" }>,
    value: string,
    out: string[],
  ): string[] {
    const cases = casesOf(type);
    const joined = this.#flat(type).slice(1);
    const discriminant = this.fresh("v");
    const names = joined.map(() => this.fresh("v"));
    const zeros = names.map((name, k) => `${name} = ${joined[k] === "i64" ? "0n" : "0"}`);
    out.push(`let ${[`${discriminant} = 0`, ...zeros].join(", ")};`);
    out.push(this.#switch(type, value, (k, payload) => {
      const inner: string[] = [`${discriminant} = ${k};`];
      const { type: of } = cases[k];
      if (of !== undefined) {
        const have = this.#flat(of);
        this.lowerFlat(of, payload, inner).forEach((flat, j) => {
          inner.push(`${names[j]} = ${coerceOut(joined[j], have[j], flat)};`);
        });
      }
      return inner.join(" ");
    }));
    return [discriminant, ...names];
  }
}

function coerceIn(joined: CoreType, wanted: CoreType, value: string): string {
  return joined === wanted ? value : fill(COERCIONS[`${joined} ${wanted}`][0], "x", value);
}

function coerceOut(joined: CoreType, have: CoreType, value: string): string {
  return joined === have ? value : fill(COERCIONS[`${joined} ${have}`][1], "v", value);
}

/** The tag of a case in JavaScript. */
function tagOf(type: ValType, name: string): string {
  return type.kind === "result" && name === "error" ? "err" : name;
}

/** The JavaScript value of a case. */
function caseValue(type: ValType, name: string, payload: string | undefined): string {
  if (type.kind === "option" && !isNullable(type.type)) return payload ?? "undefined";
  const tag = q(tagOf(type, name));
  if (payload !== undefined) return `{ tag: ${tag}, val: ${payload} }`;
  return type.kind === "result" ? `{ tag: ${tag}, val: undefined }` : `{ tag: ${tag} }`;
}

function loadDiscriminant(count: number, at: string): string {
  return loadDiscriminantOf(discriminantBytes(count), at);
}

function loadDiscriminantOf(bytes: number, at: string): string {
  return bytes === 1 ? `m.u8[${at}]` : `m.view.getUint${bytes * 8}(${at}, true)`;
}

function storeDiscriminant(count: number, at: string, value: string): string {
  return storeWord(discriminantBytes(count), at, value);
}

function storeWord(bytes: number, at: string, value: string): string {
  return bytes === 1 ? `m.u8[${at}] = ${value};` : `m.view.setUint${bytes * 8}(${at}, ${value}, true);`;
}
