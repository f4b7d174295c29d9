/**
 * Rust's symbols as the names in its sources. In: the name of a function. Out: the path that the symbol encodes, or the
 * name itself if it is not a symbol of Rust. Invariant: hostile symbols take bounded time, and their names are bounded.
 *
 * Two manglings: "legacy" (`_ZN…17h…E`, which C++ demanglers turn into `path::h…`), and v0 (`_R…`, the chapter "v0
 * Symbol Format" of the rustc book). Hashes and the disambiguators of crates are omitted. Symbols of C++ stay: its
 * linker writes readable names already.
 */

/** The maximum length of a symbol and of its name, in UTF-16 units: longer ones stay mangled. */
const MAX_NAME = 4096;
/** The maximum nesting of types and paths, and the maximum number of them that a symbol may refer to. */
const MAX_DEPTH = 200;
const MAX_NODES = 4096;

/** The name for people of a function that its module calls `name`. */
export function demangle(name: string): string {
  if (name.length > MAX_NAME) return name;
  try {
    if (name.startsWith("_R")) return demangleV0(name) ?? name;
    if (name.startsWith("_ZN")) return demangleLegacy(name) ?? name;
    return HASHED.test(name) ? unescapeLegacy(name.replace(HASHED, "")) : name;
  } catch (error) {
    if (error instanceof NotMangled) return name;
    throw error;
  }
}

/** Thrown when text is not in the grammar or too large. */
class NotMangled extends Error {}

function fail(): never {
  throw new NotMangled();
}

/** The suffix that LLVM gives to symbols that it makes unique; it says nothing about the source. */
const LLVM_SUFFIX = /^\.llvm\.[0-9A-F@]+$/;

/* Legacy symbols. */

/** The last part of a path in legacy symbols after a C++ demangler. */
const HASHED = /::h[0-9a-f]{16}(?:\.llvm\.[0-9A-F@]+)?$/;
const HASH = /^h[0-9a-f]{16}$/;

function demangleLegacy(name: string): string | undefined {
  const parts: string[] = [];
  let at = 3;
  for (;;) {
    const digits = /^[1-9]\d{0,3}/.exec(name.slice(at, at + 4))?.[0];
    if (digits === undefined) break;
    at += digits.length + Number(digits);
    if (at >= name.length) return undefined;
    parts.push(name.slice(at - Number(digits), at));
  }
  const hash = parts.pop();
  if (name[at] !== "E" || parts.length === 0 || !HASH.test(hash ?? "")) return undefined;
  return `${unescapeLegacy(parts.join("::"))}${suffixText(name.slice(at + 1))}`;
}

const LEGACY_ESCAPES: { readonly [name: string]: string | undefined } = {
  SP: "@",
  BP: "*",
  RF: "&",
  LT: "<",
  GT: ">",
  LP: "(",
  RP: ")",
  C: ",",
};

function unescapeLegacy(path: string): string {
  return path.replaceAll(/(?<=^|::)_(?=\$)/g, "").replaceAll("..", "::").replaceAll(
    /\$(?:u([0-9a-f]{1,6})|([A-Z]{1,2}))\$/g,
    (whole, code: string | undefined, name: string | undefined) => {
      return (code === undefined ? LEGACY_ESCAPES[name ?? ""] : character(parseInt(code, 16))) ?? whole;
    },
  );
}

/** A character that may appear in a name; undefined for others. */
function character(code: number): string | undefined {
  if (code < 0x20 || code === 0x7f || code > 0x10ffff || code >= 0xd800 && code < 0xe000) return undefined;
  return String.fromCodePoint(code);
}

function suffixText(suffix: string): string {
  if (suffix !== "" && !/^[.$]/.test(suffix)) fail();
  return LLVM_SUFFIX.test(suffix) ? "" : suffix;
}

/* v0 symbols. */

const BASIC_TYPES: { readonly [tag: string]: string | undefined } = {
  a: "i8",
  b: "bool",
  c: "char",
  d: "f64",
  e: "str",
  f: "f32",
  h: "u8",
  i: "isize",
  j: "usize",
  l: "i32",
  m: "u32",
  n: "i128",
  o: "u128",
  p: "_",
  s: "i16",
  t: "u16",
  u: "()",
  v: "...",
  x: "i64",
  y: "u64",
  z: "!",
};

/** The types of constants that are integers. */
const INTEGERS = "ahijlmnostxy";

function demangleV0(name: string): string | undefined {
  const suffixAt = name.search(/[.$]/);
  const symbol = suffixAt < 0 ? name : name.slice(0, suffixAt);
  if (!/^_R[A-Z]\w*$/.test(symbol)) return undefined;
  const reader = new V0Reader(symbol.slice(2));
  const path = reader.path(true);
  reader.end();
  return `${path}${suffixText(suffixAt < 0 ? "" : name.slice(suffixAt))}`;
}

/** Reads the parts of a symbol after `_R`; each method returns the text of one. */
class V0Reader {
  readonly #text: string;
  #at = 0;
  #depth = 0;
  #nodes = 0;
  /** Lifetimes that the binders around the current part introduce. */
  #lifetimes = 0;

  constructor(text: string) {
    this.#text = text;
  }

  /** Reads the crate that instantiates a generic function, which is not shown, and requires the end. */
  end(): void {
    if (this.#at < this.#text.length) this.path(false);
    if (this.#at < this.#text.length) fail();
  }

  /** A path; arguments of types follow `::` where a value is named. */
  path(isValue: boolean): string {
    return this.#nested(() => this.#pathOf(this.#take(), isValue));
  }

  #pathOf(tag: string, isValue: boolean): string {
    switch (tag) {
      case "C":
        return this.#identifier().name;
      case "M":
        this.#implementation();
        return `<${this.#type()}>`;
      case "X":
        this.#implementation();
        return `<${this.#type()} as ${this.path(false)}>`;
      case "Y":
        return `<${this.#type()} as ${this.path(false)}>`;
      case "N":
        return this.#member(isValue);
      case "I": {
        const generic = this.path(isValue);
        return `${generic}${isValue ? "::" : ""}<${this.#list(() => this.#argument()).join(", ")}>`;
      }
      case "B":
        return this.#referred(() => this.path(isValue));
      default:
        return fail();
    }
  }

  /** The path of an implementation, which is not shown. */
  #implementation(): void {
    this.#disambiguator();
    this.path(false);
  }

  #member(isValue: boolean): string {
    const namespace = this.#take();
    if (!/[A-Za-z]/.test(namespace)) fail();
    const parent = this.path(isValue);
    const { name, number } = this.#identifier();
    if (namespace >= "a") return name === "" ? parent : `${parent}::${name}`;
    const kind = { C: "closure", S: "shim" }[namespace] ?? namespace;
    return `${parent}::{${kind}${name === "" ? "" : `:${name}`}#${number}}`;
  }

  #argument(): string {
    if (this.#has("L")) return this.#lifetime(this.#number62());
    return this.#has("K") ? this.#constant(false) : this.#type();
  }

  #type(): string {
    return this.#nested(() => this.#typeOf(this.#take()));
  }

  #typeOf(tag: string): string {
    const basic = BASIC_TYPES[tag];
    if (basic !== undefined) return basic;
    switch (tag) {
      case "A": {
        const element = this.#type();
        return `[${element}; ${this.#constant(true)}]`;
      }
      case "S":
        return `[${this.#type()}]`;
      case "T":
        return tupleText(this.#list(() => this.#type()));
      case "R":
        return `&${this.#region()}${this.#type()}`;
      case "Q":
        return `&${this.#region()}mut ${this.#type()}`;
      case "P":
        return `*const ${this.#type()}`;
      case "O":
        return `*mut ${this.#type()}`;
      case "F":
        return this.#bound(() => this.#signature());
      case "D": {
        const bounds = this.#bound(() => this.#list(() => this.#dynamicTrait()).join(" + "));
        if (!this.#has("L")) fail();
        const lifetime = this.#number62();
        return `dyn ${bounds}${lifetime === 0 ? "" : ` + ${this.#lifetime(lifetime)}`}`;
      }
      case "B":
        return this.#referred(() => this.#type());
      default:
        return this.#pathOf(tag, false);
    }
  }

  /** The lifetime of a reference with the space after it, unless it is erased. */
  #region(): string {
    if (!this.#has("L")) return "";
    const lifetime = this.#number62();
    return lifetime === 0 ? "" : `${this.#lifetime(lifetime)} `;
  }

  #signature(): string {
    const unsafety = this.#has("U") ? "unsafe " : "";
    const abi = this.#has("K") ? `extern "${this.#has("C") ? "C" : this.#word().replaceAll("_", "-")}" ` : "";
    const parameters = this.#list(() => this.#type()).join(", ");
    const result = this.#type();
    return `${unsafety}${abi}fn(${parameters})${result === "()" ? "" : ` -> ${result}`}`;
  }

  /** A trait of `dyn` with its arguments and associated types. */
  #dynamicTrait(): string {
    const trait = this.path(false);
    const bindings: string[] = [];
    while (this.#has("p")) bindings.push(`${this.#word()} = ${this.#type()}`);
    if (bindings.length === 0) return trait;
    return trait.endsWith(">") ? `${trait.slice(0, -1)}, ${bindings.join(", ")}>` : `${trait}<${bindings.join(", ")}>`;
  }

  /** A constant; one that is not a literal has braces around it where it `isInside` nothing that separates it. */
  #constant(isInside: boolean): string {
    return this.#nested(() => this.#constantOf(this.#take(), isInside));
  }

  #constantOf(type: string, isInside: boolean): string {
    const braced = (text: string) => isInside ? text : `{${text}}`;
    if (INTEGERS.includes(type)) return `${this.#has("n") ? "-" : ""}${BigInt(`0x0${this.#hexDigits()}`)}`;
    switch (type) {
      case "p":
        return "_";
      case "b":
        return { "0": "false", "1": "true" }[this.#hexDigits()] ?? fail();
      case "c":
        return `'${character(parseInt(this.#hexDigits(), 16)) ?? fail()}'`;
      case "e":
        return braced(`*${this.#string()}`);
      case "R":
        return this.#has("e") ? this.#string() : braced(`&${this.#constant(true)}`);
      case "Q":
        return braced(`&mut ${this.#constant(true)}`);
      case "A":
        return braced(`[${this.#constants().join(", ")}]`);
      case "T":
        return braced(tupleText(this.#constants()));
      case "V":
        return braced(this.#structure());
      case "B":
        return this.#referred(() => this.#constant(isInside));
      default:
        return fail();
    }
  }

  #constants(): string[] {
    return this.#list(() => this.#constant(true));
  }

  /** The text of a constant structure or variant. */
  #structure(): string {
    const path = this.path(true);
    switch (this.#take()) {
      case "U":
        return path;
      case "T":
        return `${path}(${this.#constants().join(", ")})`;
      case "S": {
        const fields = this.#list(() => {
          this.#disambiguator();
          return `${this.#word()}: ${this.#constant(true)}`;
        });
        return `${path} { ${fields.join(", ")} }`;
      }
      default:
        return fail();
    }
  }

  #string(): string {
    const bytes = this.#hexDigits().match(/../g) ?? [];
    return JSON.stringify(new TextDecoder().decode(Uint8Array.from(bytes, (byte) => parseInt(byte, 16))));
  }

  #hexDigits(): string {
    return this.#match(/[0-9a-f]*/y).slice(0, this.#has("_") ? undefined : fail());
  }

  /** A part after a binder of lifetimes. */
  #bound(read: () => string): string {
    const count = this.#has("G") ? this.#number62() + 1 : 0;
    if (count > MAX_DEPTH) fail();
    const names: string[] = [];
    for (let k = 0; k < count; k++) {
      this.#lifetimes++;
      names.push(this.#lifetime(1));
    }
    const text = read();
    this.#lifetimes -= count;
    return count === 0 ? text : `for<${names.join(", ")}> ${text}`;
  }

  /** The name of a lifetime: 0 is erased, 1 that of the innermost binder. */
  #lifetime(index: number): string {
    if (index === 0) return "'_";
    const depth = this.#lifetimes - index;
    if (depth < 0) fail();
    return depth < 26 ? `'${String.fromCharCode(0x61 + depth)}` : `'_${depth}`;
  }

  /** The part at an earlier position of the symbol. */
  #referred(read: () => string): string {
    const from = this.#at - 1;
    const target = this.#number62();
    if (target >= from) fail();
    const after = this.#at;
    this.#at = target;
    const text = this.#nested(read);
    this.#at = after;
    return text;
  }

  #identifier(): { readonly name: string; readonly number: number } {
    const number = this.#disambiguator();
    return { name: this.#word(), number };
  }

  #disambiguator(): number {
    return this.#has("s") ? this.#number62() + 1 : 0;
  }

  #word(): string {
    const isPunycode = this.#has("u");
    const length = Number(this.#match(/0|[1-9]\d{0,4}/y));
    this.#has("_");
    const word = this.#text.slice(this.#at, this.#at + length);
    if (word.length < length) fail();
    this.#at += length;
    return isPunycode ? decodePunycode(word) : word;
  }

  /** A number to the base 62: `_` is 0, `0_` is 1. */
  #number62(): number {
    const digits = this.#match(/[0-9a-zA-Z]{0,11}_/y).slice(0, -1);
    let value = 0;
    for (const digit of digits) {
      value = value * 62 + "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ".indexOf(digit);
    }
    return digits === "" ? 0 : value + 1;
  }

  #list(read: () => string): string[] {
    const items: string[] = [];
    while (!this.#has("E")) items.push(read());
    return items;
  }

  /** Reads a part within the limits. */
  #nested(read: () => string): string {
    if (++this.#depth > MAX_DEPTH || ++this.#nodes > MAX_NODES) fail();
    const text = read();
    this.#depth--;
    return text.length > MAX_NAME ? fail() : text;
  }

  #take(): string {
    return this.#text[this.#at++] ?? fail();
  }

  #has(tag: string): boolean {
    if (this.#text[this.#at] !== tag) return false;
    this.#at++;
    return true;
  }

  /** The text that a sticky pattern matches. */
  #match(pattern: RegExp): string {
    pattern.lastIndex = this.#at;
    const found = pattern.exec(this.#text)?.[0] ?? fail();
    this.#at += found.length;
    return found;
  }
}

function tupleText(items: readonly string[]): string {
  return items.length === 1 ? `(${items[0]},)` : `(${items.join(", ")})`;
}

/** A name in Punycode (RFC 3492) with `_` before its encoded part. */
function decodePunycode(text: string): string {
  const split = text.lastIndexOf("_");
  const output = [...text.slice(0, Math.max(split, 0))].map((letter) => letter.charCodeAt(0));
  let code = 128;
  let index = 0;
  let bias = 72;
  for (let at = split + 1; at < text.length;) {
    const before = index;
    for (let weight = 1, k = 36;; k += 36) {
      const digit = "abcdefghijklmnopqrstuvwxyz0123456789".indexOf(text[at++] ?? fail());
      if (digit < 0) fail();
      index += digit * weight;
      if (index > 0x7fffffff) fail();
      const threshold = Math.min(Math.max(k - bias, 1), 26);
      if (digit < threshold) break;
      weight *= 36 - threshold;
    }
    const count = output.length + 1;
    bias = adaptBias(index - before, count, before === 0);
    code += Math.floor(index / count);
    index %= count;
    output.splice(index++, 0, code);
  }
  return output.map((each) => character(each) ?? fail()).join("");
}

function adaptBias(delta: number, count: number, isFirst: boolean): number {
  let rest = isFirst ? Math.floor(delta / 700) : delta >> 1;
  rest += Math.floor(rest / count);
  let k = 0;
  for (; rest > 455; k += 36) rest = Math.floor(rest / 35);
  return k + Math.floor(36 * rest / (rest + 38));
}
