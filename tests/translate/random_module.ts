/**
 * Random WebAssembly modules from a seed, as text: interactions of control flow and locals in WebAssembly 2.0. In: a
 * seed. Out: a module with a memory, globals, a table and functions `f0` … that call earlier ones, directly and through
 * the table.
 *
 * Every run terminates: loops and calls decrement a global and trap at zero. NaN bits are never observable, because the
 * specification does not determine them: a float is stored or reinterpreted only after a test for NaN.
 */

type Type = "i32" | "i64" | "f32" | "f64";
const TYPES: readonly Type[] = ["i32", "i64", "f32", "f64"];

interface Label {
  types: readonly Type[];
}

interface Signature {
  params: readonly Type[];
  results: readonly Type[];
}

const INTS = [
  "0",
  "1",
  "-1",
  "2",
  "3",
  "4",
  "7",
  "8",
  "-8",
  "16",
  "31",
  "32",
  "255",
  "256",
  "65535",
  "-2147483648",
  "2147483647",
  "1000003",
];
const FLOATS = [
  "0",
  "-0",
  "1",
  "-1.5",
  "0.5",
  "2.5",
  "1e10",
  "-3e9",
  "4294967296",
  "-9.3e18",
  "inf",
  "-inf",
  "nan",
  "1e-40",
]; // deno-fmt-ignore-line

const INT_BINARY = "add sub mul and or xor shl shr_s shr_u rotl rotr add sub and".split(" ");
const INT_DIVIDE = "div_s div_u rem_s rem_u".split(" ");
const INT_UNARY = "clz ctz popcnt extend8_s extend16_s".split(" ");
const INT_COMPARE = "eq ne lt_s lt_u gt_s gt_u le_s le_u ge_s ge_u".split(" ");
const FLOAT_BINARY = "add sub mul div min max".split(" ");
const FLOAT_UNARY = "abs neg sqrt ceil floor trunc nearest".split(" ");
const FLOAT_COMPARE = "eq ne lt gt le ge".split(" ");

export class RandomModule {
  readonly #random: () => number;
  readonly #signatures: Signature[] = [];
  #locals: Type[] = [];
  #budget = 0;

  constructor(seed: number) {
    let state = (seed * 2654435761) >>> 0;
    this.#random = () => {
      state = (state + 0x6d2b79f5) >>> 0;
      let t = Math.imul(state ^ (state >>> 15), state | 1);
      t = (t + Math.imul(t ^ (t >>> 7), t | 61)) ^ t;
      return (t ^ (t >>> 14)) >>> 0;
    };
  }

  #below(n: number): number {
    return this.#random() % n;
  }

  #pick<T>(list: readonly T[]): T {
    return list[this.#below(list.length)];
  }

  #types(most: number): Type[] {
    return Array.from({ length: this.#below(most + 1) }, () => this.#pick(TYPES));
  }

  /** The signature of function `k`; valid after text(). */
  signature(k: number): Signature {
    return this.#signatures[k];
  }

  get count(): number {
    return this.#signatures.length;
  }

  text(): string {
    const functions: string[] = [];
    const count = 2 + this.#below(6);
    for (let k = 0; k < count; k++) functions.push(this.#function(k));
    const elements = Array.from({ length: 6 }, () => `$f${this.#below(count)}`);
    return [
      "(module",
      '  (memory (export "memory") 1 3)',
      "  (table 8 funcref)",
      `  (elem (i32.const 1) func ${elements.join(" ")})`,
      '  (global $fuel (export "fuel") (mut i32) (i32.const 0))',
      '  (global $g0 (export "g0") (mut i32) (i32.const 5))',
      '  (global $g1 (export "g1") (mut i64) (i64.const -7))',
      "  (global $g2 i32 (i32.const 12))",
      '  (data $d "0123456789abcdefghijklmnopqrstuvwxyz")',
      ...functions,
      ")",
    ].join("\n");
  }

  #function(k: number): string {
    const signature = { params: this.#types(4), results: this.#types(2) };
    this.#signatures.push(signature);
    const declared = this.#types(5);
    this.#locals = [...signature.params, ...declared];
    // Small ones are candidates for inlining.
    this.#budget = this.#below(2) === 0 ? 2 + this.#below(10) : 40 + this.#below(200);
    const params = signature.params.map((type) => `(param ${type})`).join(" ");
    const results = signature.results.length > 0 ? `(result ${signature.results.join(" ")})` : "";
    const locals = declared.length > 0 ? `(local ${declared.join(" ")})` : "";
    const body = this.#body([{ types: signature.results }], signature.results, 0);
    return `  (func $f${k} (export "f${k}") ${params} ${results} ${locals} ${this.#burn()} ${body})`;
  }

  /** Consumes one unit of fuel, or traps. */
  #burn(): string {
    return "(global.set $fuel (i32.sub (global.get $fuel) (i32.const 1))) " +
      "(if (i32.lt_s (global.get $fuel) (i32.const 0)) (then unreachable))";
  }

  /** Statements, then values of `results`. */
  #body(labels: readonly Label[], results: readonly Type[], depth: number): string {
    const parts: string[] = [];
    const count = this.#below(depth === 0 ? 8 : 4) + (depth === 0 ? 1 : 0);
    for (let n = 0; n < count && this.#budget > 0; n++) parts.push(this.#statement(labels, depth));
    if (this.#below(12) === 0) parts.push(this.#jump(labels, depth));
    parts.push(...results.map((type) => this.#expression(type, labels, depth)));
    return parts.join(" ");
  }

  #values(types: readonly Type[], labels: readonly Label[], depth: number): string {
    return types.map((type) => this.#expression(type, labels, depth + 1)).join(" ");
  }

  #jump(labels: readonly Label[], depth: number): string {
    const label = this.#below(labels.length);
    const values = this.#values(labels[labels.length - 1 - label].types, labels, depth);
    switch (this.#below(4)) {
      case 0:
        return `(return ${this.#values(labels[0].types, labels, depth)})`;
      case 1:
        return this.#below(6) === 0 ? "(unreachable)" : `(br ${label} ${values})`;
      case 2:
        return this.#table(labels, depth);
      default:
        return `(br ${label} ${values})`;
    }
  }

  #table(labels: readonly Label[], depth: number): string {
    const last = this.#below(labels.length);
    const { types } = labels[labels.length - 1 - last];
    const alike = labels.map((label, k) => ({ label, k: labels.length - 1 - k })).filter(({ label }) =>
      label.types.length === types.length && label.types.every((type, n) => type === types[n])
    );
    const targets = Array.from({ length: this.#below(5) }, () => this.#pick(alike).k);
    const index = this.#below(3) === 0
      ? `(i32.and ${this.#expression("i32", labels, depth)} (i32.const 3))`
      : this.#expression("i32", labels, depth);
    return `(br_table ${targets.join(" ")} ${last} ${this.#values(types, labels, depth)} ${index})`;
  }

  #statement(labels: readonly Label[], depth: number): string {
    this.#budget--;
    const deep = depth > 5;
    switch (this.#below(deep ? 6 : 14)) {
      case 0:
      case 1:
      case 2: {
        if (this.#locals.length === 0) return "(nop)";
        const local = this.#below(this.#locals.length);
        return `(local.set ${local} ${this.#expression(this.#locals[local], labels, depth)})`;
      }
      case 3:
        return this.#store(labels, depth);
      case 4:
        if (this.#below(2) === 0) return `(global.set $g0 ${this.#expression("i32", labels, depth)})`;
        return `(global.set $g1 ${this.#expression("i64", labels, depth)})`;
      case 5: {
        const label = this.#below(labels.length);
        const { types } = labels[labels.length - 1 - label];
        const drops = types.map(() => "(drop)").join(" ");
        return `(br_if ${label} ${this.#values(types, labels, depth)} ${this.#condition(labels, depth)}) ${drops}`;
      }
      case 6:
      case 7:
        return this.#block("block", labels, depth);
      case 8:
      case 9:
        return this.#block("loop", labels, depth);
      case 10:
      case 11: {
        const inner = [...labels, { types: [] }];
        const otherwise = this.#below(2) === 0 ? `(else ${this.#body(inner, [], depth + 1)})` : "";
        return `(if ${this.#condition(labels, depth)} (then ${this.#body(inner, [], depth + 1)}) ${otherwise})`;
      }
      case 12:
        return this.#bulk(labels, depth);
      default: {
        const result = this.#pick(TYPES);
        return `(drop ${this.#expression(result, labels, depth)})`;
      }
    }
  }

  /** A block or loop with parameters and results; results go to locals or are dropped. */
  #block(kind: "block" | "loop", labels: readonly Label[], depth: number): string {
    const params = this.#below(3) === 0 ? this.#types(2) : [];
    const results = this.#below(3) === 0 ? this.#types(2) : [];
    const inner = [...labels, { types: kind === "loop" ? params : results }];
    const before = this.#values(params, labels, depth);
    const head = `${params.length > 0 ? `(param ${params.join(" ")})` : ""} ${
      results.length > 0 ? `(result ${results.join(" ")})` : ""
    }`;
    const takes = [...params].reverse().map((type) => this.#take(type)).join(" ");
    const fuel = kind === "loop" ? this.#burn() : "";
    const body = this.#body(inner, results, depth + 1);
    const after = [...results].reverse().map((type) => this.#take(type)).join(" ");
    return `${before} (${kind} ${head} ${takes} ${fuel} ${body}) ${after}`;
  }

  /** Pops a value to a local of its type, or drops it. */
  #take(type: Type): string {
    const fitting = this.#locals.flatMap((local, k) => local === type ? [k] : []);
    return fitting.length > 0 && this.#below(3) > 0 ? `(local.set ${this.#pick(fitting)})` : "(drop)";
  }

  #condition(labels: readonly Label[], depth: number): string {
    if (this.#below(15) === 0) return `(i32.const ${this.#below(2)})`;
    const inner = this.#below(4) === 0 ? this.#expression("i32", labels, depth + 1) : this.#compare(labels, depth + 1);
    return this.#below(4) === 0 ? `(i32.eqz ${inner})` : inner;
  }

  #compare(labels: readonly Label[], depth: number): string {
    const type = this.#pick(TYPES);
    const op = this.#pick(type[0] === "i" ? INT_COMPARE : FLOAT_COMPARE);
    return `(${type}.${op} ${this.#expression(type, labels, depth + 1)} ${this.#expression(type, labels, depth + 1)})`;
  }

  /** An address, usually in bounds. */
  #address(labels: readonly Label[], depth: number): string {
    if (this.#below(20) === 0) return this.#expression("i32", labels, depth + 1);
    return `(i32.and ${this.#expression("i32", labels, depth + 1)} (i32.const ${
      this.#pick(["255", "1020", "65535"])
    }))`;
  }

  #offset(): string {
    return this.#below(2) === 0 ? "" : `offset=${this.#pick(["1", "4", "8", "100", "65530", "4294967295"])}`.replace(
      /offset=(65530|4294967295)/,
      (all) => this.#below(4) === 0 ? all : "offset=16",
    );
  }

  #store(labels: readonly Label[], depth: number): string {
    const type = this.#pick(TYPES);
    const widths = type === "i32" ? ["", "8", "16"] : type === "i64" ? ["", "8", "16", "32"] : [""];
    const value = type[0] === "f" ? this.#float(type, labels, depth) : this.#expression(type, labels, depth + 1);
    return `(${type}.store${this.#pick(widths)} ${this.#offset()} ${this.#address(labels, depth)} ${value})`;
  }

  /** A float that is not NaN. */
  #float(type: Type, labels: readonly Label[], depth: number): string {
    const fitting = this.#locals.flatMap((local, k) => local === type ? [k] : []);
    if (fitting.length === 0) return `(${type}.const 1)`;
    const local = this.#pick(fitting);
    const set = `(local.set ${local} ${this.#expression(type, labels, depth + 1)})`;
    const get = `(local.get ${local})`;
    return `${set} (select ${get} (${type}.const 0) (${type}.eq ${get} ${get}))`;
  }

  #bulk(labels: readonly Label[], depth: number): string {
    const to = this.#address(labels, depth);
    const length = this.#below(2) === 0
      ? `(i32.const ${this.#below(40)})`
      : `(i32.and ${this.#expression("i32", labels, depth)} (i32.const 31))`;
    switch (this.#below(4)) {
      case 0:
        return `(memory.fill ${to} ${
          this.#below(2) === 0 ? "(i32.const 0x1a5)" : this.#expression("i32", labels, depth)
        } ${length})`;
      case 1:
        return `(memory.init $d ${to} (i32.const ${this.#below(10)}) ${length})`;
      case 2:
        return "(drop (memory.grow (i32.const 1)))";
      default:
        return `(memory.copy ${to} ${this.#address(labels, depth)} ${length})`;
    }
  }

  #expression(type: Type, labels: readonly Label[], depth: number): string {
    this.#budget--;
    if (this.#budget <= 0 || depth > 9) return this.#leaf(type);
    switch (this.#below(14)) {
      case 0:
      case 1:
      case 2:
        return this.#leaf(type);
      case 3: {
        const fitting = this.#locals.flatMap((local, k) => local === type ? [k] : []);
        if (fitting.length === 0) return this.#leaf(type);
        return `(local.tee ${this.#pick(fitting)} ${this.#expression(type, labels, depth + 1)})`;
      }
      case 4: {
        const a = this.#expression(type, labels, depth + 1);
        const b = this.#expression(type, labels, depth + 1);
        return `(select ${a} ${b} ${this.#condition(labels, depth + 1)})`;
      }
      case 5: {
        const inner = [...labels, { types: [type] }];
        const condition = this.#condition(labels, depth + 1);
        const then = this.#body(inner, [type], depth + 1);
        return `(if (result ${type}) ${condition} (then ${then}) (else ${this.#body(inner, [type], depth + 1)}))`;
      }
      case 6:
        return `(block (result ${type}) ${this.#body([...labels, { types: [type] }], [type], depth + 1)})`;
      case 7:
        return this.#call(type, labels, depth);
      case 8:
        return this.#load(type, labels, depth);
      default:
        return this.#operation(type, labels, depth);
    }
  }

  #load(type: Type, labels: readonly Label[], depth: number): string {
    const widths = type === "i32"
      ? ["", "8_s", "8_u", "16_s", "16_u"]
      : type === "i64"
      ? ["", "8_s", "8_u", "16_s", "16_u", "32_s", "32_u"]
      : [""];
    return `(${type}.load${this.#pick(widths)} ${this.#offset()} ${this.#address(labels, depth)})`;
  }

  #call(type: Type, labels: readonly Label[], depth: number): string {
    const fitting = this.#signatures.flatMap((signature, k) => {
      const current = k === this.#signatures.length - 1 && this.#below(3) > 0;
      return signature.results.length === 1 && signature.results[0] === type && !current ? [k] : [];
    });
    if (fitting.length === 0) return this.#leaf(type);
    const callee = this.#pick(fitting);
    const { params, results } = this.#signatures[callee];
    const args = this.#values(params, labels, depth);
    if (this.#below(3) > 0) return `(call $f${callee} ${args})`;
    const typeUse = `${params.map((param) => `(param ${param})`).join(" ")} (result ${results[0]})`;
    const index = this.#below(5) === 0 ? this.#expression("i32", labels, depth + 1) : `(i32.const ${this.#below(9)})`;
    return `(call_indirect ${typeUse} ${args} ${index})`;
  }

  #leaf(type: Type): string {
    const fitting = this.#locals.flatMap((local, k) => local === type ? [k] : []);
    if (fitting.length > 0 && this.#below(4) > 0) return `(local.get ${this.#pick(fitting)})`;
    if (type === "i32" && this.#below(4) === 0) return this.#below(2) === 0 ? "(global.get $g0)" : "(global.get $g2)";
    if (type === "i64" && this.#below(4) === 0) return "(global.get $g1)";
    if (type === "i32" && this.#below(20) === 0) return "(memory.size)";
    return `(${type}.const ${this.#pick(type[0] === "i" ? INTS : FLOATS)})`;
  }

  #operation(type: Type, labels: readonly Label[], depth: number): string {
    const operand = (of: Type) => this.#expression(of, labels, depth + 1);
    const isInt = type[0] === "i";
    switch (this.#below(8)) {
      case 0:
        // The sign of a NaN is undetermined, too, so signs are copied from values that are never NaN.
        if (!isInt && this.#below(4) === 0) {
          return `(${type}.copysign ${operand(type)} (${type}.convert_i64_s ${operand("i64")}))`;
        }
        return `(${type}.${this.#pick(isInt ? INT_UNARY : FLOAT_UNARY)} ${operand(type)})`;
      case 1:
        if (type === "i32") return this.#compare(labels, depth);
        return this.#conversion(type, labels, depth);
      case 2:
        return this.#conversion(type, labels, depth);
      case 3:
        if (isInt) {
          const divisor = this.#below(3) > 0 ? `(${type}.const ${this.#pick(INTS)})` : operand(type);
          return `(${type}.${this.#pick(INT_DIVIDE)} ${operand(type)} ${divisor})`;
        }
        return `(${type}.${this.#pick(FLOAT_BINARY)} ${operand(type)} ${operand(type)})`;
      case 4:
        if (isInt) return `(${type}.${this.#pick(INT_BINARY)} ${operand(type)} (${type}.const ${this.#pick(INTS)}))`;
        return `(${type}.${this.#pick(FLOAT_BINARY)} ${operand(type)} ${operand(type)})`;
      default:
        return `(${type}.${this.#pick(isInt ? INT_BINARY : FLOAT_BINARY)} ${operand(type)} ${operand(type)})`;
    }
  }

  #conversion(type: Type, labels: readonly Label[], depth: number): string {
    const sign = this.#pick(["s", "u"]);
    const operand = (of: Type) => this.#expression(of, labels, depth + 1);
    const float = this.#pick(["f32", "f64"] as const);
    const int = this.#pick(["i32", "i64"] as const);
    switch (type) {
      case "i32":
        if (this.#below(3) === 0) return `(i32.wrap_i64 ${operand("i64")})`;
        if (this.#below(3) === 0) return `(i64.eqz ${operand("i64")})`;
        return `(i32.trunc_${this.#below(4) > 0 ? "sat_" : ""}${float}_${sign} ${operand(float)})`;
      case "i64":
        if (this.#below(2) === 0) return `(i64.extend_i32_${sign} ${operand("i32")})`;
        if (this.#below(3) === 0) return `(i64.extend32_s ${operand("i64")})`;
        return `(i64.trunc_${this.#below(4) > 0 ? "sat_" : ""}${float}_${sign} ${operand(float)})`;
      case "f32":
        return this.#below(3) === 0
          ? `(f32.demote_f64 ${operand("f64")})`
          : `(f32.convert_${int}_${sign} ${operand(int)})`;
      case "f64":
        return this.#below(3) === 0
          ? `(f64.promote_f32 ${operand("f32")})`
          : `(f64.convert_${int}_${sign} ${operand(int)})`;
    }
  }
}
