/**
 * Merges the chunks of a bundle, because Deno takes longer to load several files than a large one:
 * `deno run -A scripts/package/merge_chunks.ts FOLDER ENTRY [NAME]…`. In: a folder with the output of `deno bundle
 * --code-splitting`, all in one level, the entry module whose imports count, and further modules that keep their names.
 * Out: the same folder, where the entry loads at most two other modules: one that it shares with late modules, and one
 * that also reaches a top-level `await`.
 *
 * Invariant: a module that is loaded by `require` reaches no top-level `await`, unless it did before.
 */
import { type AnyNode, parse, type Program } from "acorn";
import { readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join, posix } from "node:path";
import { type OutputChunk, rollup } from "@rollup/wasm-node";
import { awaits, closureOf, isNode, moduleAt, reachesAwait, refuseWarnings } from "./module_graph.ts";

/** One module of the folder: its text, the names of the modules that it imports, and whether it awaits. */
interface Chunk {
  readonly text: string;
  readonly imports: readonly string[];
  readonly late: readonly string[];
  readonly hasAwait: boolean;
}

type Chunks = ReadonlyMap<string, Chunk>;

/** The name of the chunk that a specifier names; undefined for modules elsewhere. */
function nameOf(specifier: unknown): string | undefined {
  return typeof specifier === "string" && specifier.startsWith("./") ? posix.normalize(specifier) : undefined;
}

/** All nodes inside of a node. */
function* nodesOf(node: AnyNode | Program): Generator<AnyNode> {
  for (const part of Object.values(node).flat()) {
    if (!isNode(part)) continue;
    yield part;
    yield* nodesOf(part);
  }
}

function readChunk(text: string): Chunk {
  const program = parse(text, { ecmaVersion: "latest", sourceType: "module" });
  const imports: string[] = [];
  const late: string[] = [];
  for (const node of nodesOf(program)) {
    if (!("source" in node) || !isNode(node.source) || !("value" in node.source)) continue;
    const name = nameOf(node.source.value);
    if (name !== undefined) (node.type === "ImportExpression" ? late : imports).push(name);
  }
  return { text, imports, late, hasAwait: awaits(program) };
}

/** The names of the merged chunks: of each chunk that `entry` loads and shares with one of `others`. */
function mergedNames(chunks: Chunks, entry: string, others: readonly string[]): Map<string, string> {
  const stem = entry.replace(/\.js$/, "");
  const shared = new Set(others.flatMap((name) => [...closureOf(chunks, name)]));
  const names = [...closureOf(chunks, entry)].filter((name) => name !== entry && shared.has(name));
  return new Map(names.map((name) => [name, reachesAwait(chunks, name) ? `${stem}_shared` : `${stem}_base`]));
}

/** Merges the chunks of the modules in `texts`, by name; `kept` lists modules that keep their names. */
export async function mergeChunks(
  texts: ReadonlyMap<string, string>,
  entry: string,
  kept: readonly string[],
): Promise<Map<string, string>> {
  const chunks: Chunks = new Map([...texts].map(([name, text]) => [name, readChunk(text)]));
  const late = [...chunks.values()].flatMap((chunk) => chunk.late);
  const names = mergedNames(chunks, entry, [...kept, ...late]);
  const bundle = await rollup({
    input: Object.fromEntries([entry, ...kept].map((name) => [name.replace(/\.js$/, ""), name])),
    preserveEntrySignatures: "strict",
    plugins: [{
      name: "chunks",
      resolveId: (specifier, importer) =>
        importer === undefined ? specifier : nameOf(specifier) ?? { id: specifier, external: true },
      load: (name) => moduleAt(chunks, name).text,
    }],
    onLog: refuseWarnings,
  });
  const { output } = await bundle.generate({
    format: "esm",
    compact: true,
    entryFileNames: "[name].js",
    chunkFileNames: "[name].js",
    manualChunks: (name) => names.get(name),
  });
  await bundle.close();
  const isChunk = (part: { type: string }): part is OutputChunk => part.type === "chunk";
  return new Map(output.filter(isChunk).map(({ fileName, code }) => [fileName, code]));
}

if (import.meta.main) {
  const [folder, entry, ...kept] = Deno.args;
  const names = readdirSync(folder);
  const texts = new Map(names.map((name) => [name, readFileSync(join(folder, name), "utf8")]));
  const merged = await mergeChunks(texts, entry, kept);
  for (const name of names) rmSync(join(folder, name));
  for (const [name, text] of merged) writeFileSync(join(folder, name), text);
}
