/**
 * Chooses the generated part of the fuzzer's corpus: `deno run -A scripts/fuzz/fuzz_corpus.ts [--seeds N]`. In: a
 * number of seeds per feature. Out: tests/fuzz/corpus/generated.json, a small set of modules that has every opcode that
 * any of the seeds has.
 */
import { NewEngine } from "../../engine/mod.ts";
import { opcodesOf } from "../../tests/fuzz/opcodes.ts";
import { COMPILED_FEATURES } from "../../tests/fuzz/compare.ts";
import { type CorpusEntry, writeCorpus } from "../../tests/fuzz/corpus.ts";
import { generateModules } from "../../tests/fuzz/generate_module.ts";
import { readTaskLine } from "../task_options.ts";

const task = {
  name: "run -A scripts/fuzz/fuzz_corpus.ts",
  about: "Chooses a small set of generated modules that has every generated opcode.",
  options: { seeds: { value: "N", least: 1, help: "number of seeds per feature", default: "300" } },
} as const;
const { values: { seeds } } = readTaskLine(task);

interface Candidate extends CorpusEntry {
  readonly bytes: number;
  readonly opcodes: ReadonlySet<string>;
}

function candidates(): Candidate[] {
  const engine = NewEngine();
  return COMPILED_FEATURES.flatMap((feature) =>
    Array.from({ length: seeds }, (_, seed) => {
      const modules = generateModules(seed, COMPILED_FEATURES, [feature]);
      const opcodes = new Set(modules.flatMap((module) => [...opcodesOf(engine.parse(module))]));
      const bytes = modules.reduce((sum, { length }) => sum + length, 0);
      return { about: `own generator, ${feature}`, seed, modules, bytes, opcodes };
    })
  );
}

/** Takes the candidate with the most new opcodes per byte until none has any. */
function chosen(from: readonly Candidate[]): CorpusEntry[] {
  const covered = new Set<string>();
  const entries: CorpusEntry[] = [];
  for (;;) {
    const worth = ({ opcodes, bytes }: Candidate) => opcodes.difference(covered).size / (bytes + 100);
    const best = from.reduce((a, b) => worth(b) > worth(a) ? b : a);
    if (worth(best) === 0) return entries;
    for (const opcode of best.opcodes) covered.add(opcode);
    entries.push({ about: best.about, seed: best.seed, modules: best.modules });
  }
}

const entries = chosen(candidates());
writeCorpus("generated.json", entries);
console.log(`${entries.length} cases`);
