/**
 * Batches of cases in child processes, so that a crash or a hang of compiled code is attributed to a seed and ends no
 * other case. In: options. Out: totals; differences, crashes and progress on stdout.
 */
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { type Options, sourceOf } from "./fuzz_options.ts";
import { addTotals, emptyTotals, report, type Totals } from "./fuzz_totals.ts";

/** Cases per child process: the first thousand cost up to twice as much, because the compiler is cold. */
const BATCH = 4000;
/** The time limit of one case. */
const CASE_MS = 120_000;

/** The script that runs a child. */
export const SCRIPT: string = fileURLToPath(new URL("fuzz.ts", import.meta.url));

/** Consecutive seeds. */
interface Batch {
  readonly seed: number;
  readonly count: number;
}

/** Starts the child process of a batch. */
function startChild({ seed, count }: Batch, options: Options): Deno.ChildProcess {
  const args = ["run", "-A", "--no-check", SCRIPT, "--child", "--seed", `${seed}`, "--count", `${count}`];
  args.push("--out", options.out, "--only", options.features.join(), "--feature", options.forced.join());
  args.push("--tier", options.tier, "--scenario", options.scenarios.join());
  if (options.source !== undefined) args.push("--source", options.source);
  if (options.rotate) args.push("--rotate");
  return new Deno.Command(Deno.execPath(), { args, stdout: "piped", stderr: "piped" }).spawn();
}

/** The lines of a stream as they arrive; text after the last line break is dropped. */
async function* linesOf(stream: ReadableStream<Uint8Array<ArrayBuffer>>): AsyncGenerator<string> {
  let rest = "";
  for await (const chunk of stream.pipeThrough(new TextDecoderStream())) {
    const lines = (rest + chunk).split("\n");
    rest = lines.pop() ?? "";
    yield* lines;
  }
}

/** Runs a batch in a child; returns the remaining cases if the child crashed or hung. */
async function runBatch(
  batch: Batch,
  options: Options,
  totals: Totals,
  onFound: (seed: number) => void = () => {},
): Promise<Batch | undefined> {
  const child = startChild(batch, options);
  const errors = new Response(child.stderr).text();
  let current = batch.seed;
  let finished = false;
  let hung = false;
  let timer: ReturnType<typeof setTimeout> | undefined;
  const watch = () => {
    clearTimeout(timer);
    timer = setTimeout(() => {
      hung = true;
      child.kill("SIGKILL");
    }, CASE_MS);
  };
  watch();
  for await (const line of linesOf(child.stdout)) {
    watch();
    const [, word, rest] = /^(\w+) (.*)$/.exec(line) ?? [];
    const seed = parseInt(rest);
    if (word === "start") current = seed;
    else if (word === "soft") console.log(line);
    else if (word === "found") {
      onFound(seed);
      console.log(`seed ${seed} (${sourceOf(seed, options)}) differs:\n${JSON.parse(rest.slice(`${seed} `.length))}`);
    } else if (word === "totals") {
      finished = true;
      addTotals(totals, JSON.parse(rest) as Totals);
    }
  }
  clearTimeout(timer);
  const status = await child.status;
  if (finished) return undefined;
  totals.crashed++;
  totals[sourceOf(current, options)] += current + 1 - batch.seed; // the child reports its counts only at the end
  const why = hung ? `hung for ${CASE_MS / 1000} s` : `died (${status.signal ?? `exit ${status.code}`})`;
  const text = `seed ${current} (${sourceOf(current, options)}) ${why}\n${(await errors).slice(-1500)}`;
  console.log(text);
  writeFileSync(join(options.out, `${sourceOf(current, options)}-${current}.crash.txt`), text);
  const left = batch.seed + batch.count - current - 1;
  return left > 0 ? { seed: current + 1, count: left } : undefined;
}

/** The cases of the options, by child process; at least one for each job. */
export function batchesOf({ seed: first, count, jobs }: Pick<Options, "seed" | "count" | "jobs">): Batch[] {
  const size = Math.min(BATCH, Math.ceil(count / jobs));
  const batches: Batch[] = [];
  for (let seed = first; seed < first + count; seed += size) {
    batches.push({ seed, count: Math.min(size, first + count - seed) });
  }
  return batches;
}

/** Runs `batches` in parallel child processes. `onDone` is called with the number of cases of each. */
export async function runAll(
  batches: Batch[],
  options: Options,
  totals: Totals,
  { onFound, onDone }: { onFound?: (seed: number) => void; onDone?: (count: number) => void },
): Promise<void> {
  const worker = async () => {
    for (let next = batches.shift(); next !== undefined; next = batches.shift()) {
      for (let left: Batch | undefined = next; left !== undefined;) {
        left = await runBatch(left, options, totals, onFound);
      }
      onDone?.(next.count);
    }
  };
  await Promise.all(Array.from({ length: options.jobs }, worker));
}

/** Runs all cases of the options in parallel batches; status 1 if any differ or crash. */
export async function runBatches(options: Options): Promise<void> {
  mkdirSync(options.out, { recursive: true });
  const totals = emptyTotals();
  const started = performance.now();
  let done = 0;
  await runAll(batchesOf(options), options, totals, {
    onDone(count) {
      done += count;
      console.log(`${done} of ${options.count}, ${Math.round((performance.now() - started) / 1000)} s`);
    },
  });
  report(totals, (performance.now() - started) / 1000);
  if (totals.found + totals.crashed > 0) {
    console.log(`See ${options.out}`);
    Deno.exit(1);
  }
}
