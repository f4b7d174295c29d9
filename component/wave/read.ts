/**
 * WAVE text → JavaScript values. In: text and the type that the value must have. Out: the value in the form that
 * exported functions take. A map is a list of pairs. Errors are MalformedError with line, column and the expected type.
 */
import { camelCase } from "../abi/names.ts";
import type { FuncType, ValType } from "../model/types.ts";
import { typeName } from "../abi/type_name.ts";
import { WaveCursor } from "./wave_cursor.ts";

/** Limit on the nesting of values. */
const NESTING_LIMIT = 1000;

const INTEGERS: Readonly<Record<string, readonly [min: bigint, max: bigint]>> = {
  u8: [0n, 0xffn],
  s8: [-0x80n, 0x7fn],
  u16: [0n, 0xffffn],
  s16: [-0x8000n, 0x7fffn],
  u32: [0n, 0xffff_ffffn],
  s32: [-0x8000_0000n, 0x7fff_ffffn],
  u64: [0n, (1n << 64n) - 1n],
  s64: [-(1n << 63n), (1n << 63n) - 1n],
};

const SPECIAL_FLOATS: Readonly<Record<string, number>> = { nan: NaN, inf: Infinity, "-inf": -Infinity };

/** The name of a function and the arguments of a call such as `greet("you")`. */
export interface WaveCall {
  readonly name: string;
  /** Reads the arguments. Throws MalformedError. */
  readonly args: (type: FuncType) => unknown[];
}

/** Reads one value of `type`. */
export function readWave(text: string, type: ValType): unknown {
  const cursor: WaveCursor = new WaveCursor(text);
  const value = new Reader(cursor).value(type);
  requireEnd(cursor);
  return value;
}

/** Reads a call: a name and arguments in parentheses. */
export function readWaveCall(text: string): WaveCall {
  const cursor: WaveCursor = new WaveCursor(text);
  const name = cursor.functionName();
  if (name === undefined) cursor.fail(`expected the name of a function, found ${cursor.found}`);
  if (!cursor.sees("(")) cursor.fail(`expected "(" after the name of the function, found ${cursor.found}`);
  return {
    name: name.replace(/(^|#)%/, "$1"),
    args: (type) => {
      const values = new Reader(cursor).args(type);
      requireEnd(cursor);
      return values;
    },
  };
}

function requireEnd(cursor: WaveCursor): void {
  if (!cursor.ended) cursor.fail(`expected the end of the text, found ${cursor.found}`);
}

class Reader {
  readonly #cursor: WaveCursor;
  #depth = 0;

  constructor(cursor: WaveCursor) {
    this.#cursor = cursor;
  }

  /** The arguments of a call; options at the end may be absent. */
  args({ params }: FuncType): unknown[] {
    const cursor: WaveCursor = this.#cursor;
    const values: unknown[] = [];
    cursor.expect("(");
    cursor.sequence(")", () => {
      const param = params[values.length];
      if (param === undefined) cursor.fail(`the function takes ${count(params.length, "argument")}`);
      values.push(this.value(param.type));
    });
    for (const { name, type } of params.slice(values.length)) {
      if (type.kind !== "option") {
        cursor.fail(`the argument ${name}: ${typeName(type)} is missing`, Math.max(0, this.#closingAt()));
      }
      values.push(noneOf(type));
    }
    return values;
  }

  /** The offset of the closing parenthesis that was taken last. */
  #closingAt(): number {
    return this.#cursor.text.lastIndexOf(")", this.#cursor.at - 1);
  }

  value(type: ValType): unknown {
    if (++this.#depth > NESTING_LIMIT) this.#cursor.fail("values are nested too deeply");
    const value = this.#value(type);
    this.#depth--;
    return value;
  }

  #value(type: ValType): unknown {
    if (INTEGERS[type.kind] !== undefined) return this.#integer(type);
    switch (type.kind) {
      case "bool":
        return this.#bool(type);
      case "f32":
      case "f64":
        return this.#float(type);
      case "char":
        return this.#cursor.sees("'") ? this.#cursor.character() : this.#expected(type);
      case "string":
        return this.#cursor.sees('"') ? this.#cursor.string() : this.#expected(type);
      case "list":
        return this.#list(type);
      case "map":
        return new Map(this.#items({ kind: "tuple", types: [type.key, type.value] }) as [unknown, unknown][]);
      case "tuple":
        return this.#tuple(type);
      case "record":
        return this.#record(type);
      case "flags":
        return this.#flags(type);
      case "enum":
        return this.#enum(type);
      case "variant":
        return this.#variant(type);
      case "option":
        return this.#option(type);
      case "result":
        return this.#result(type);
      default:
        return this.#cursor.fail(`a value of type ${typeName(type)} cannot be written`);
    }
  }

  #expected(type: ValType): never {
    this.#cursor.fail(`expected ${typeName(type)}, found ${this.#cursor.found}`);
  }

  #integer(type: ValType): number | bigint {
    const start = this.#cursor.at;
    const text = this.#cursor.number();
    if (text === undefined) this.#expected(type);
    if (!/^-?\d+$/.test(text)) this.#cursor.fail(`expected ${type.kind}, found ${JSON.stringify(text)}`, start);
    const value = BigInt(text);
    const [min, max] = INTEGERS[type.kind];
    if (value < min || value > max) {
      this.#cursor.fail(`${text} is out of the range of ${type.kind} (${min} to ${max})`, start);
    }
    return type.kind.endsWith("64") ? value : Number(value);
  }

  #float(type: ValType): number {
    const label = this.#cursor.peekLabel();
    const text = label === undefined
      ? this.#cursor.number()
      : label in SPECIAL_FLOATS
      ? this.#cursor.label()
      : undefined;
    if (text === undefined) this.#expected(type);
    const value = SPECIAL_FLOATS[text] ?? Number(text);
    return type.kind === "f32" ? Math.fround(value) : value;
  }

  #bool(type: ValType): boolean {
    const label = this.#cursor.peekLabel();
    if (label !== "true" && label !== "false") this.#expected(type);
    this.#cursor.label();
    return label === "true";
  }

  #items(element: ValType): unknown[] {
    const items: unknown[] = [];
    if (!this.#cursor.take("[")) this.#expected({ kind: "list", element });
    this.#cursor.sequence("]", () => void items.push(this.value(element)));
    return items;
  }

  #list(type: Extract<ValType, { kind: "list" }>): unknown[] {
    const start = this.#cursor.at;
    if (!this.#cursor.sees("[")) this.#expected(type);
    const items = this.#items(type.element);
    if (type.length !== undefined && items.length !== type.length) {
      this.#cursor.fail(`expected ${count(type.length, "element")}, found ${items.length}`, start);
    }
    return items;
  }

  #tuple(type: Extract<ValType, { kind: "tuple" }>): unknown[] {
    const cursor: WaveCursor = this.#cursor;
    const items: unknown[] = [];
    const start = cursor.at;
    if (!cursor.take("(")) this.#expected(type);
    cursor.sequence(")", () => {
      const element = type.types[items.length];
      if (element === undefined) cursor.fail(`the tuple has ${count(type.types.length, "element")}`);
      items.push(this.value(element));
    });
    if (items.length < type.types.length) {
      cursor.fail(`expected ${count(type.types.length, "element")}, found ${items.length}`, start);
    }
    return items;
  }

  /** Fields in any order; those that are options may be absent. `{:}` has no fields. */
  #record(type: Extract<ValType, { kind: "record" }>): Record<string, unknown> {
    const cursor: WaveCursor = this.#cursor;
    const start = cursor.at;
    if (!cursor.take("{")) this.#expected(type);
    const given = new Map<string, unknown>();
    if (cursor.take(":")) cursor.expect("}");
    else {
      cursor.sequence("}", () => {
        const at = cursor.at;
        const name = this.#labelOf("field", type.fields);
        if (given.has(name)) cursor.fail(`the field ${name} is given twice`, at);
        cursor.expect(":");
        given.set(name, this.value(type.fields.find((field) => field.name === name)!.type));
      });
    }
    return Object.fromEntries(type.fields.map(({ name, type }) => {
      if (!given.has(name) && type.kind !== "option") {
        cursor.fail(`the field ${name}: ${typeName(type)} is missing`, start);
      }
      return [camelCase(name), given.has(name) ? given.get(name) : noneOf(type)];
    }));
  }

  /** A label that is one of `names`. */
  #labelOf(what: string, rows: readonly { readonly name: string }[]): string {
    const label = this.#cursor.peekLabel();
    const name = label?.replace("%", "");
    if (!rows.some((row) => row.name === name)) {
      const choices = rows.map((row) => row.name).join(", ");
      this.#cursor.fail(
        `expected the ${what} ${rows.length > 1 ? "one of " : ""}${choices}, found ${this.#cursor.found}`,
      );
    }
    this.#cursor.label();
    return name!;
  }

  #flags({ names }: Extract<ValType, { kind: "flags" }>): Record<string, boolean> {
    const cursor: WaveCursor = this.#cursor;
    const set = new Set<string>();
    const rows = names.map((name) => ({ name }));
    cursor.expect("{");
    cursor.sequence("}", () => {
      const at = cursor.at;
      const name = this.#labelOf("flag", rows);
      if (set.has(name)) cursor.fail(`the flag ${name} is given twice`, at);
      set.add(name);
    });
    return Object.fromEntries(names.map((name) => [camelCase(name), set.has(name)]));
  }

  #enum({ names }: Extract<ValType, { kind: "enum" }>): string {
    return this.#labelOf("case", names.map((name) => ({ name })));
  }

  #variant({ cases }: Extract<ValType, { kind: "variant" }>): unknown {
    const tag = this.#labelOf("case", cases);
    const { type } = cases.find(({ name }) => name === tag)!;
    return type === undefined ? { tag } : { tag, val: this.#payload(type) };
  }

  #payload(type: ValType): unknown {
    this.#cursor.expect("(");
    const value = this.value(type);
    this.#cursor.expect(")");
    return value;
  }

  #option(type: Extract<ValType, { kind: "option" }>): unknown {
    const label = this.#cursor.peekLabel();
    if (label === "none") {
      this.#cursor.label();
      return noneOf(type);
    }
    if (label === "some") this.#cursor.label();
    else this.#requireFlat(type, type.type);
    const value = label === "some" ? this.#payload(type.type) : this.value(type.type);
    return type.type.kind === "option" ? { tag: "some", val: value } : value;
  }

  #result(type: Extract<ValType, { kind: "result" }>): unknown {
    const label = this.#cursor.peekLabel();
    if (label === "ok" || label === "err") {
      this.#cursor.label();
      const of = label === "ok" ? type.ok : type.err;
      return of === undefined ? { tag: label } : { tag: label, val: this.#payload(of) };
    }
    if (type.ok === undefined) this.#expected(type);
    this.#requireFlat(type, type.ok);
    return { tag: "ok", val: this.value(type.ok) };
  }

  /** A payload may be written without its case, unless it is an option, a result or a keyword of one. */
  #requireFlat(type: ValType, payload: ValType): void {
    const label = this.#cursor.peekLabel();
    const isKeyword = label !== undefined && /^(?:some|none|ok|err)$/.test(label);
    if (payload.kind === "option" || payload.kind === "result" || isKeyword) this.#expected(type);
  }
}

/** The value `none` of an option. */
function noneOf(type: ValType): unknown {
  return type.kind === "option" && type.type.kind === "option" ? { tag: "none" } : undefined;
}

function count(number: number, noun: string): string {
  return number === 0 ? `no ${noun}s` : `${number} ${noun}${number === 1 ? "" : "s"}`;
}
