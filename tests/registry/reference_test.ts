/**
 * The API reference: TypeScript printed from `deno doc`, and a page for each public symbol of the engine.
 */
import assert from "node:assert/strict";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { execFileSync } from "node:child_process";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import process from "node:process";
import { readDocJson } from "../../registry/site/reference/doc_json.ts";
import { buildReference } from "../../registry/site/reference/build.ts";
import { readSource, REFERENCE_MODULES, referencePages } from "../../registry/site/reference/pages.ts";
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
  "## Functions",
  "- [`join`](https://waft.sh/reference/join): Joins `Pair`s.",
  "# join",
  "Joins [`Pair`](https://waft.sh/reference/Pair)s. Throws RangeError.",
  "function join<T extends object>(a: readonly T[], b?: Map<string, T | undefined>, ...rest: (string | number)[]): T[keyof T] | null",
  'function two(a: 1): "x"',
  'function two(a: 2): "y"',
  "interface Pair<A, B = A>",
  "- `readonly first: A`: The first.",
  "- `second?: [A, B?]`",
  "## Pair.swap",
  "class Box extends Error implements Iterable<number>",
  "## new Box",
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
    const pages = referencePages(REFERENCE_MODULES[0], readDocJson(json), `${pathToFileURL(folder).href}/`);
    const source = pages.map((page) => page.source).join("\n");
    const lines = source.split("\n");
    for (const line of LINES) assert.ok(lines.includes(line), `${line}\n\n${source}`);
    const box = pages.find(({ path }) => path === "reference/Box.md")!;
    const line = SOURCE.split("\n").findIndex((text) => text.startsWith("export class Box")) + 1;
    assert.deepEqual(readSource(box.source), { file: "module.ts", line: String(line) });
    assert.equal(readSource(pages[0].source), undefined, "a page of a module is from many files");
    assert.doesNotMatch(source, /hidden|secret|inside|@internal|Symbol\.iterator/);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
});

Deno.test("every value that the engine exports has a page with its declaration and its source", async () => {
  const pages = (await buildReference())!;
  const modules = pages.filter(({ path }) => !path.includes("/"));
  assert.deepEqual(modules.map((p) => p.path), REFERENCE_PAGES.map((name) => `${name}.md`));
  const byPath = new Map(pages.map(({ path, source }) => [path, source]));
  assert.equal(new Set(pages.map(({ path }) => path.toLowerCase())).size, pages.length, "for folders that ignore case");
  for (const name of Object.keys(engine)) {
    const [, path] =
      new RegExp(`- \\[\`${name}\`\\]\\(https://waft\\.sh/(reference/${name}(?:-2)?)\\)`).exec(modules[0].source) ??
        [];
    const source = byPath.get(`${path}.md`);
    assert.ok(source !== undefined, name);
    assert.match(source, new RegExp(`^# ${name}$[\\s\\S]*?^(?:function|class|const) ${name}\\b`, "m"), name);
    const { file, line } = readSource(source)!;
    const lines = (await readFile(new URL(`../../${file}`, import.meta.url), "utf8")).split("\n");
    assert.match(lines[Number(line) - 1], new RegExp(`\\b${name}\\b`), `${file}:${line}`);
  }
  for (const { path, source } of pages) {
    assert.doesNotMatch(source, /: unknown\b.*\[UNSUPPORTED\]|undefined: /);
    for (const [, target, method] of source.matchAll(/\]\(https:\/\/waft\.sh\/(reference[^)#]*)#?([^)]*)/g)) {
      const there = byPath.get(`${target}.md`);
      assert.ok(there !== undefined, `${path} links to ${target}`);
      const headings = [...there.matchAll(/^## (.*)$/gm)].map(([, title]) => title.toLowerCase().replace(".", "-"));
      assert.ok(method === "" || headings.includes(method), `${path} links to ${method} of ${target}`);
    }
  }
});
