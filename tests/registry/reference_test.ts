/**
 * The API reference: TypeScript printed from `deno doc`, and a section for each public symbol of the engine.
 */
import assert from "node:assert/strict";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { execFileSync } from "node:child_process";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { readDocJson } from "../../registry/site/reference/doc_json.ts";
import { buildReference } from "../../registry/site/reference/build.ts";
import { REFERENCE_MODULES, referencePage } from "../../registry/site/reference/pages.ts";
import { REFERENCE_PAGES } from "../../registry/docs_toc.ts";
import * as engine from "../../engine/mod.ts";

const SOURCE = `/**
 * A module for the test.
 *
 * @module
 */

/** Joins {@link Pair}s. Throws RangeError. */
export function join<T extends object>(a: readonly T[], b?: Map<string, T | undefined>, ...rest: (string | number)[]): T[keyof T] | null {
  return null;
}
/** Overload one. */
export function two(a: 1): "x";
export function two(a: 2): "y";
export function two(a: number): string {
  return String(a);
}
/** A pair. */
export interface Pair<A, B = A> {
  /** The first. */
  readonly first: A;
  second?: [A, B?];
  /** Swaps. */
  swap(this: void, by: (a: A) => asserts a is A & {}): Pair<B, A>;
  /** @internal */
  hidden: number;
}
/** A class. */
export class Box extends Error implements Iterable<number> {
  /** Makes one. */
  constructor(private readonly size: number, { deep = false }: { deep?: boolean } = {}) {
    super();
  }
  /** Its size. */
  get area(): number {
    return this.size;
  }
  /** Opens. */
  static open(at = 0): Promise<Box> {
    return Promise.resolve(new Box(at));
  }
  *[Symbol.iterator](): Generator<number> {}
  /** @internal */
  secret(): void {}
}
/** A map. */
export type Mapped = { readonly [K in "a" | "b"]?: typeof limit };
/** A choice. */
export type Choice<T> = T extends string ? { [key: string]: () => void } : \`v\${number}\` | (new () => T)[];
/** A limit. */
export const limit: 5 = 5;
/** @internal */
export const inside = 1;
`;

/** Lines that the page must contain. */
const LINES = [
  "A module for the test.",
  "## join",
  "Function. Joins `Pair`s. Throws RangeError.",
  "function join<T extends object>(a: readonly T[], b?: Map<string, T | undefined>, ...rest: (string | number)[]): T[keyof T] | null",
  'function two(a: 1): "x"',
  'function two(a: 2): "y"',
  "interface Pair<A, B = A>",
  "- `readonly first: A`: The first.",
  "- `second?: [A, B?]`",
  "### Pair.swap",
  "class Box extends Error implements Iterable<number>",
  "### new Box",
  "- `readonly area: number`: Its size.",
  "static open(at?: number): Promise<Box>",
  'type Mapped = { [K in "a" | "b"]?: typeof limit }',
  "const limit: 5",
];

Deno.test("the reference prints declarations as an author writes them, without internal parts", async () => {
  const folder = await mkdtemp(join(tmpdir(), "waft-doc-"));
  try {
    const file = join(folder, "module.ts");
    await writeFile(file, SOURCE);
    const json = execFileSync(process.execPath, ["doc", "--json", "--quiet", file], { encoding: "utf8" });
    const { source } = referencePage(REFERENCE_MODULES[0], readDocJson(json));
    const lines = source.split("\n");
    for (const line of LINES) assert.ok(lines.includes(line), `${line}\n\n${source}`);
    assert.doesNotMatch(source, /hidden|secret|inside|@internal|Symbol\.iterator/);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
});

Deno.test("every value that the engine exports has a section with its declaration", async () => {
  const pages = (await buildReference())!;
  assert.deepEqual(pages.map((p) => p.path), REFERENCE_PAGES.map((name) => `${name}.md`));
  const [main] = pages.map((p) => p.source) as [string];
  for (const name of Object.keys(engine)) {
    assert.match(main, new RegExp(`^## ${name}$[\\s\\S]*?^(?:function|class|const) ${name}\\b`, "m"), name);
  }
  for (const { source } of pages) assert.doesNotMatch(source, /: unknown\b.*\[UNSUPPORTED\]|undefined: /);
});
