/**
 * The corpus of the fuzzer: modules that were generated once, with the seeds of their scenarios, and reduced modules
 * that once differed. In: the files of the folder corpus/. Out: entries, and their comparison with V8. The files keep
 * their modules when the generators change.
 */
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import type { EngineOptions } from "../../engine/api/engine.ts";
import { compareModules, type Difference } from "./compare.ts";
import { runScenarioCase, type ScenarioName } from "./scenarios.ts";

const FOLDER = new URL("./corpus/", import.meta.url);

/** One case of the corpus. */
export interface CorpusEntry {
  /** Its origin: the generator, or the fault that it showed. */
  readonly about: string;
  readonly seed: number;
  readonly scenario?: ScenarioName;
  readonly modules: readonly Uint8Array<ArrayBuffer>[];
}

/** An entry as JSON: modules in base64. */
type StoredEntry = Omit<CorpusEntry, "modules"> & { readonly modules: readonly string[] };

/** The entries of all files, by file name. */
export function readCorpus(): Map<string, CorpusEntry[]> {
  const names = readdirSync(FOLDER).filter((name) => name.endsWith(".json")).sort();
  return new Map(names.map((name) => [name, readEntries(new URL(name, FOLDER))]));
}

function readEntries(file: URL): CorpusEntry[] {
  const stored = JSON.parse(readFileSync(file, "utf8")) as StoredEntry[];
  return stored.map((entry) => ({ ...entry, modules: entry.modules.map((text) => Uint8Array.fromBase64(text)) }));
}

/** Writes the file `name` of the corpus. */
export function writeCorpus(name: string, entries: readonly CorpusEntry[]): void {
  const stored = entries.map((entry) => ({ ...entry, modules: entry.modules.map((bytes) => bytes.toBase64()) }));
  writeFileSync(new URL(name, FOLDER), `${JSON.stringify(stored, null, 2)}\n`);
}

const TIERS: readonly EngineOptions[] = [
  { tier: "baseline", bounds: "explicit" },
  { tier: "optimizing" },
  { tier: "auto", tierUpCalls: 1 },
];

/** The differences of an entry from V8, in all tiers. */
export async function replayEntry({ seed, scenario, modules }: CorpusEntry): Promise<readonly Difference[]> {
  if (scenario === undefined) return compareModules(modules, seed, TIERS).differences;
  const differences: Difference[] = [];
  for (const { tier } of TIERS) {
    differences.push(...(await runScenarioCase(scenario, seed, [], tier, modules)).differences);
  }
  return differences;
}
