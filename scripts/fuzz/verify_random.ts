/**
 * Verifies the machine code of random modules: `deno task verify:random --count N --seed S --state FILE`. Out: the
 * functions of which no code is proven, and totals; status 1 if there are any. With --state, totals are saved after
 * each batch, and an interrupted run resumes.
 */
import { existsSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import process from "node:process";
import { GENERATED_FEATURES, GENERATED_PROPOSALS } from "../../tests/fuzz/generate_module.ts";
import { prepareRandom, verifyRandom } from "../../tests/verify/random_code.ts";
import { oneOf, progress, readTaskLine, wrongUsage } from "../task_options.ts";

const FORCED = [...GENERATED_FEATURES, ...GENERATED_PROPOSALS];

const task = {
  name: "task verify:random",
  about: "Verifies the machine code of random modules, in both tiers and modes, on both architectures.",
  options: {
    count: { value: "N", least: 1, help: "number of seeds", default: "1000" },
    seed: { value: "S", least: 1, help: "first seed", default: "1" },
    feature: {
      value: "A,B…",
      help: `features and proposals that every module uses: ${FORCED.join(", ")}`,
      default: "",
    },
    quarter: { help: "verify each module in one tier on one architecture, in turn" },
    state: { value: "FILE", help: "save the totals in this file, and resume an earlier run" },
  },
} as const;
/** Seeds between two writes of the state. */
const BATCH = 50;
/** Most findings that the state keeps. */
const KEPT = 1000;

const { values: { count, seed, feature, quarter, state: file } } = readTaskLine(task);
const forced = feature === "" ? [] : feature.split(",").map((name) => oneOf(task, "--feature", name, FORCED));

/** Totals of the seeds from `seed` to `next` − 1. */
interface State {
  readonly seed: number;
  next: number;
  modules: number;
  functions: number;
  bytes: number;
  unprovenAtFirst: number;
  unproven: number;
  findings: string[];
}

function readState(): State {
  const empty = { seed, next: seed, modules: 0, functions: 0, bytes: 0, unprovenAtFirst: 0, unproven: 0, findings: [] };
  if (file === undefined || !existsSync(file)) return empty;
  const state: State = { ...empty, ...JSON.parse(readFileSync(file, "utf8")) };
  if (state.seed !== seed) wrongUsage(task, `${file} begins with seed ${state.seed}; name it with --seed`);
  return state;
}

function writeState(state: State): void {
  if (file === undefined) return;
  writeFileSync(`${file}.new`, JSON.stringify(state, undefined, 1));
  renameSync(`${file}.new`, file);
}

function verifyNext(state: State): void {
  const { modules, functions, bytes, unprovenAtFirst, unproven } = verifyRandom(state.next++, quarter, forced);
  state.modules += modules;
  state.functions += functions;
  state.bytes += bytes;
  state.unprovenAtFirst += unprovenAtFirst;
  state.unproven += unproven.length;
  state.findings.push(...unproven.slice(0, KEPT - state.findings.length));
  for (const line of unproven) console.log(line);
}

await prepareRandom();
const state = readState();
const end = seed + count;
while (state.next < end) {
  verifyNext(state);
  if ((state.next - seed) % BATCH === 0 || state.next === end) writeState(state);
  progress(`${state.next - seed} of ${count}, ${state.unproven} functions not proven`);
}
progress("");
console.log(
  `${state.next - seed} seeds, ${state.modules} modules, ${state.functions} functions, ${state.bytes} bytes: ` +
    `${state.unprovenAtFirst} functions not proven at first, ${state.unproven} in the end`,
);
process.exit(state.unproven > 0 ? 1 : 0);
