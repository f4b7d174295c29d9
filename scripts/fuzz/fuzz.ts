/**
 * Differential fuzzing: `deno task fuzz` runs random modules on waft and on V8 and compares the results. In: options
 * (`--help` lists them). Out: for each difference the modules and a description in the output folder; progress and
 * totals on stdout. Exit status: 0 no difference, 1 difference or crash, 2 usage error.
 *
 * `--hours H` runs everything in turn, resumes, and adds reduced modules to the corpus that the tests replay.
 * `--shrink` with `--seed S` reduces the modules of one seed while they still differ; with `--files A.wasm,B.wasm` it
 * reduces the modules in those files.
 */
import { runBatches } from "./fuzz_batches.ts";
import { runChild } from "./fuzz_child.ts";
import { runHours } from "./fuzz_hours.ts";
import { readOptions } from "./fuzz_options.ts";
import { runShrink } from "./fuzz_shrink.ts";

const options = readOptions();
if (options.child) await runChild(options);
else if (options.shrink) await runShrink(options);
else if (options.hours !== undefined) await runHours(options, options.hours);
else await runBatches(options);
