/** Each rewriting from TypeScript to AssemblyScript, and each construct that is refused, with its place. */
import assert from "node:assert/strict";
import ts from "typescript";
import { compileSubset } from "./compile_subset.ts";
import { constantText } from "./constant_text.ts";
import { type Problem, rewriteFile } from "./rewrite.ts";

/** Types that the cases share, as a file of the subset. */
const SHARED = `export interface Pair { readonly x: number; y: number }
export class Box { f: Int32Array = new Int32Array(4); op: Uint16Array = new Uint16Array(4); pair: Pair = { x: 1, y: 2 }; }
`;

interface Case {
  readonly name: string;
  readonly source: string;
  /** The body as AssemblyScript; undefined for a construct that is refused. */
  readonly text?: string;
  /** A part of the problem. */
  readonly refused?: string;
}

function first(): void {}
function second(): void {}

/** The functions of tables. */
const FUNCTIONS: ReadonlyMap<unknown, { readonly name: string; readonly from: string | undefined }> = new Map([
  [first, { name: "first", from: undefined }],
  [second, { name: "second", from: "./shared.ts" }],
]);

/** Rewrites the sources, each as a file of its own beside the shared one. */
function rewriteAll(sources: readonly string[], values: ReadonlyMap<string, unknown> = new Map()) {
  const texts = new Map(
    sources.map((text, n) => [`/case${n}.ts`, `import { Box, type Pair } from "./shared.ts";\n${text}`]),
  );
  texts.set("/shared.ts", SHARED);
  const options: ts.CompilerOptions = {
    target: ts.ScriptTarget.ESNext,
    module: ts.ModuleKind.ESNext,
    moduleResolution: ts.ModuleResolutionKind.Bundler,
    allowImportingTsExtensions: true,
    noEmit: true,
    strict: true,
    lib: ["lib.esnext.d.ts"],
    types: [],
  };
  const host = ts.createCompilerHost(options);
  const { readFile, fileExists } = host;
  host.readFile = (path) => texts.get(path) ?? readFile.call(host, path);
  host.fileExists = (path) => texts.has(path) || fileExists.call(host, path);
  host.getSourceFile = (path, target) => {
    const text = host.readFile(path);
    return text === undefined ? undefined : ts.createSourceFile(path, text, target, true);
  };
  const program = ts.createProgram([...texts.keys()], options, host);
  return sources.map((_, n) => {
    const source = program.getSourceFile(`/case${n}.ts`)!;
    return rewriteFile(source, {
      checker: program.getTypeChecker(),
      file: `case${n}.ts`,
      values,
      hostOnly: new Set(),
      hostOnlyOf: () => new Set(),
      functionOf: (value) => FUNCTIONS.get(value),
      isPortable: (from) => from === "./shared.ts",
      implementor: (name) => name === "Filled" ? { name: "Filler", from: "./filler.ts" } : undefined,
    });
  });
}

/** The text after the import of the shared file. */
function body(text: string): string {
  return text.slice(text.indexOf("\n") + 1);
}

const CASES: readonly Case[] = [
  {
    name: "numbers are integers of 32 bits, truth values are bool",
    source: "function f(a: number, b: boolean): number { return b ? a : 0; }",
    text: "function f(a: i32, b: bool): i32 { return b ? a : 0; }",
  },
  {
    name: "private fields and methods get an underscore",
    source: "class C { #n = 1; #add(k: number): number { return this.#n + k; } }",
    text: "class C { _n: i32 = 1; _add(k: i32): i32 { return this._n + k; } }",
  },
  {
    name: "a field without a type gets that of its initializer",
    source: "class C { on = false; readonly seen = new Map<number, number[]>(); }",
    text: "class C { on: bool = false; readonly seen: Map<i32, i32[]> = new Map<i32, i32[]>(); }",
  },
  {
    name: "destructured fields become variables, and keep their lines",
    source: "function f(b: Box): number {\n  const {\n    f,\n    pair: { y },\n  } = b;\n  return f[y];\n}",
    text: "function f(b: Box): i32 {\n  const f = b.f, y = b.pair.y\n\n\n;\n  return f[y];\n}",
  },
  {
    name: "a destructured result is computed once",
    source:
      "function g(): Pair { return { x: 1, y: 2 }; }\nfunction f(): number { const { x, y } = g(); return x + y; }",
    text: "function g(): Pair { return { x: 1, y: 2 }; }\n" +
      "function f(): i32 { const $whole0 = g(), x = $whole0.x, y = $whole0.y; return x + y; }",
  },
  {
    name: "equality without conversions",
    source: "function f(a: number): boolean { return a === 1 || a !== 2; }",
    text: "function f(a: i32): bool { return a == 1 || a != 2; }",
  },
  {
    name: "elements of narrow arrays are widened, and narrowed when they are stored",
    source: "function f(b: Box, k: number): number { b.op[k] = k; b.op[k] |= 4; return b.op[k] - 1; }",
    text: "function f(b: Box, k: i32): i32 { b.op[k] = <u16>(k); b.op[k] = <u16>(<i32>b.op[k] | (4)); " +
      "return (<i32>b.op[k]) - 1; }",
  },
  {
    name: "loops over arrays, typed arrays, Sets and Maps",
    source:
      "function f(a: readonly number[], b: Uint8Array, s: Set<number>, m: ReadonlyMap<number, number>): void {\n" +
      "  for (const x of a) g(x);\n  for (const x of b) g(x);\n  for (const x of s) g(x);\n" +
      "  for (const [k, v] of m) g(k + v);\n}\nfunction g(_: number): void {}",
    text: "function f(a: i32[], b: Uint8Array, s: Set<i32>, m: Map<i32, i32>): void {\n" +
      "  for (let $i0 = 0, $list1 = a; $i0 < $list1.length; $i0++) { const x = $list1[$i0]; g(x); }\n" +
      "  for (let $i2 = 0, $list3 = b; $i2 < $list3.length; $i2++) { const x = <i32>$list3[$i2]; g(x); }\n" +
      "  for (let $i4 = 0, $list5 = s.values(); $i4 < $list5.length; $i4++) { const x = $list5[$i4]; g(x); }\n" +
      "  for (let $i6 = 0, $list7 = m.keys(), $values8 = m.values(); $i6 < $list7.length; $i6++) " +
      "{ const k = $list7[$i6], v = $values8[$i6]; g(k + v); }\n}\nfunction g(_: i32): void {}",
  },
  {
    name: "a lookup in a Map with an alternative",
    source: "function f(m: Map<number, number>, k: number): number { return m.get(k) ?? k; }",
    text: "function f(m: Map<i32, i32>, k: i32): i32 { return (m.has(k) ? m.get(k) : k); }",
  },
  {
    name: "a lookup that succeeds has no null",
    source: "function f(m: Map<number, number>, k: number): number { return m.get(k)!; }",
    text: "function f(m: Map<i32, i32>, k: i32): i32 { return m.get(k); }",
  },
  {
    name: "undefined is null",
    source: "function f(p: Pair | undefined): boolean { return p === undefined; }",
    text: "function f(p: Pair | null): bool { return p == null; }",
  },
  {
    name: "an optional function is called if there is one",
    source: "type Seen = (k: number) => void;\nfunction f(seen?: Seen): void { seen?.(1); }",
    text: "type Seen = (k: i32) => void;\nfunction f(seen: Seen | null = null): void { if (seen != null) seen(1); }",
  },
  {
    name: "functions of Math on integers",
    source:
      "function f(a: number, b: number): number { return Math.max(Math.imul(a, b), Math.clz32(a), Math.abs(b)); }",
    text: "function f(a: i32, b: i32): i32 { return max(max(((a) * (b)), <i32>clz<i32>(a)), abs(b)); }",
  },
  {
    name: "a quotient has a fraction, unless it is truncated",
    source: "function f(a: number, b: number): number { return (a / b) | 0; }",
    text: "function f(a: i32, b: i32): i32 { return (a / b) | 0; }",
  },
  {
    name: "hexadecimal numbers are bit patterns",
    source: "function f(): number { return 0x9e3779b1 ^ 0x7f; }",
    text: "function f(): i32 { return (<i32>0x9e3779b1) ^ 0x7f; }",
  },
  {
    name: "a failure ends the compiler",
    source: "function f(a: number): void { if (a < 0) throw new Error(`negative: ${a}`); }",
    text: 'function f(a: i32): void { if (a < 0) throw new Error(""); }',
  },
  {
    name: "a failure that a function makes is noted by it",
    source:
      "function g(at: number): Error { return new Error(); }\nfunction f(a: number): void { if (a < 0) throw g(a); }",
    text: "function g(at: i32): Error { return new Error(); }\n" +
      'function f(a: i32): void { if (a < 0) { g(a); throw new Error(""); } }',
  },
  {
    name: "another name of number is an integer, too",
    source: "type Id = number;\nfunction f(a: Id, b: readonly Id[]): Id { return a + b[0]; }",
    text: "type Id = i32;\nfunction f(a: i32, b: i32[]): i32 { return a + b[0]; }",
  },
  {
    name: "an interface of data is a class, and one with an implementation another name of it",
    source: "interface Mine { readonly n: number; box: Box }\ninterface Filled { n: number }",
    text: "class Mine { n: i32 = 0; box: Box = changetype<Box>(0); }\n" +
      'import { Filler as Filled } from "./filler"; export { Filled };',
  },
  {
    name: "a call without a result can be returned",
    source: "function g(): void {}\nfunction f(): void { return g(); }",
    text: "function g(): void {}\nfunction f(): void { { g(); return; } }",
  },
  {
    name: "variables that are exchanged",
    source: "function f(a: number, b: number): number { [a, b] = [b, a + 1]; return a - b; }",
    text: "function f(a: i32, b: i32): i32 { { const $value0 = b, $value1 = a + 1; a = $value0; b = $value1; } " +
      "return a - b; }",
  },
  {
    name: "names of other files",
    source: 'import * as shared from "./shared.ts";\nexport { Box } from "./shared.ts";',
    text: 'import * as shared from "./shared";\nexport { Box } from "./shared";',
  },
  {
    name: "a function that captures nothing",
    source: "function f(a: number[]): boolean { return a.some((x) => x > 1); }",
    text: "function f(a: i32[]): bool { return a.some((x) => x > 1); }",
  },
  {
    name: "a function that captures a variable",
    source: "function f(a: number[], k: number): boolean {\n  return a.some((x) => x > k);\n}",
    refused: "captures k",
  },
  { name: "a method's this", source: "class C { f(): void { const g = () => this; g(); } }", refused: "captures this" },
  { name: "a union", source: "function f(a: number | boolean): void {}", refused: "a union" },
  { name: "a number that may be undefined", source: "function f(a: number | undefined): void {}", refused: "a union" },
  { name: "a tuple", source: "function f(): [number, number] { return [1, 2]; }", refused: "a tuple" },
  { name: "an array taken apart", source: "function f(a: number[]): void { const [x] = a; }", refused: "taken apart" },
  { name: "a type without a name", source: "function f(a: { x: number }): void {}", refused: "without a name" },
  { name: "a destructured parameter", source: "function f({ x }: Pair): void {}", refused: "destructured parameter" },
  { name: "a spread", source: "function f(a: number[]): number[] { return [...a]; }", refused: "a spread" },
  { name: "text", source: "function f(a: number): string { return `${a}`; }", refused: "text made of values" },
  { name: "unsigned conversion", source: "function f(a: number): number { return a >>> 0; }", refused: "`>>> 0`" },
  { name: "a power", source: "function f(a: number): number { return 2 ** a; }", refused: "a power" },
  { name: "a caught exception", source: "function f(): void { try { f(); } catch {} }", refused: "caught exception" },
  { name: "a generator", source: "function* f(): Generator<number> { yield 1; }", refused: "a generator" },
  {
    name: "assignment by ??=",
    source: "class C { p?: Pair; f(): void { this.p ??= { x: 1, y: 2 }; } }",
    refused: "old value",
  },
  {
    name: "a count in a narrow array",
    source: "function f(b: Box): void { b.op[0]++; }",
    refused: "fewer than 32 bits",
  },
  {
    name: "the value of an assignment to a narrow array",
    source: "function f(b: Box): number { return b.op[0] = 70000; }",
    refused: "assign twice",
  },
  {
    name: "an element above 2^31",
    source: "function f(b: Uint32Array): number { return b[0]; }",
    refused: "above 2^31",
  },
  { name: "other optional chaining", source: "function f(p?: Pair): void { p?.y; }", refused: "optional chaining" },
  { name: "a statement at the top level", source: "if (Box.length > 4) Box.toString();", refused: "top level" },
];

const REWRITTEN = rewriteAll(CASES.map(({ source }) => source));

for (const [n, { name, text, refused }] of CASES.entries()) {
  Deno.test(`rewriting: ${name}`, () => {
    const { text: found, problems } = REWRITTEN[n];
    if (text !== undefined) {
      assert.deepEqual(problems, []);
      assert.equal(body(found), text);
      return;
    }
    const place = (problem: Problem) => problem.line > 1 && problem.file === `case${n}.ts`;
    assert.ok(problems.some((p) => place(p) && p.what.includes(refused!)), JSON.stringify(problems));
  });
}

Deno.test("rewriting: a problem names the line of its construct", () => {
  const [{ problems }] = rewriteAll([
    "function f(a: number[], k: number): boolean {\n  return a.some((x) => x > k);\n}",
  ]);
  assert.deepEqual(problems.map(({ line }) => line), [3]);
});

Deno.test("rewriting: constants become their values, those of other rooms too", () => {
  const source = 'import { TRAP } from "./other.ts";\nimport type { f64 } from "./numbers.ts";\n' +
    "export const TABLE = new Uint8Array(2);\nconst TWO: f64 = 2;\nconst { A, B } = { A: 1, B: -1 };\n" +
    "for (const k of [0, 1]) TABLE[k] = 7;\nfunction f(): number { return TABLE[TRAP.BAD] + A; }";
  const values = new Map<string, unknown>([
    ["TRAP", { BAD: 1, throw: 2 }],
    ["TABLE", Uint8Array.of(7, 7)],
    ["TWO", 2],
    ["A", 1],
    ["B", -1],
  ]);
  const [{ text, problems }] = rewriteAll([source], values);
  assert.deepEqual(problems, []);
  assert.equal(
    body(text),
    "namespace TRAP { export const BAD: i32 = 1; }\n\nexport const TABLE: StaticArray<u8> = [7, 7];\n" +
      "const TWO: f64 = 2.0;\nconst A: i32 = 1; const B: i32 = -1;\n\n" +
      "function f(): i32 { return (<i32>TABLE[TRAP.BAD]) + A; }",
  );
});

Deno.test("rewriting: tables of functions name their functions", () => {
  const source = "type Rule = (n: number) => void;\nexport const RULES: readonly Rule[] = rules();\n" +
    "const ROWS = [3, -1];";
  const [{ text, problems }] = rewriteAll(
    [source],
    new Map<string, unknown>([["RULES", [second, first]], ["ROWS", [3, -1]]]),
  );
  assert.deepEqual(problems, []);
  assert.equal(
    body(text),
    "type Rule = (n: i32) => void;\n" +
      'export const RULES: Rule[] = [changetype<Rule>($second), changetype<Rule>(first)]; import { second as $second } from "./shared";\n' +
      "const ROWS: StaticArray<i32> = [3, -1];",
  );
  const [unnamed] = rewriteAll(["export const RULES: readonly unknown[] = rules();"], new Map([["RULES", [() => 1]]]));
  assert.match(unnamed.problems[0].what, /a function without a name in a table/);
});

Deno.test("rewriting: AssemblyScript refuses a quotient of integers", async () => {
  const sources = [
    "export function f(a: f64, b: number): f64 { return a / b; }",
    "export function f(a: number): f64 { return a / 2; }",
  ];
  const [fraction, integer] = rewriteAll(sources).map(({ text }) => body(text));
  assert.match(fraction, /^export function f\(a: f64, b: i32\): f64 { return \$divide\(a, b\); }$/m);
  await compileSubset({ texts: new Map(), problems: [] }, fraction);
  await assert.rejects(compileSubset({ texts: new Map(), problems: [] }, integer), /a quotient of integers/);
});

Deno.test("rewriting: a problem is an error with its place", async () => {
  const problems = [{ file: "engine/x.ts", line: 3, what: "a tuple: declare an interface" }];
  await assert.rejects(compileSubset({ texts: new Map(), problems }, ""), /^Error: engine\/x\.ts:3: a tuple/);
});

Deno.test("rewriting: values without a counterpart have no text", () => {
  for (const value of ["text", ["text"], [], {}, [1.5], () => 1, undefined, null, { a: 1.5 }]) {
    assert.equal(constantText("X", value, true), undefined);
  }
  assert.equal(constantText("X", 1.5, false), "const X: f64 = 1.5;");
  assert.equal(constantText("X", 4294967296, true), "export const X: f64 = 4294967296.0;");
  assert.equal(constantText("X", 0xffffffff, false), "const X: i32 = -1;");
  assert.equal(constantText("X", true, false), "const X: bool = true;");
  assert.equal(constantText("X", Int16Array.of(-1, 2), false), "const X: StaticArray<i16> = [-1, 2];");
});
