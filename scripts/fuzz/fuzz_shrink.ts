/**
 * `deno task fuzz --shrink`: reduces modules that differ. In: the seed of a case, or `--files`. Out: the smallest
 * modules found that still differ, as small-SEED.N.wasm in the output folder; status 1 if none differ.
 */
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { compareModules, configurations, modulesOf } from "../../tests/fuzz/compare.ts";
import { shrink } from "../../tests/fuzz/shrink.ts";
import { forcedOf, generatorFor, type Options, sourceOf } from "./fuzz_options.ts";

/** Reduces the modules of the options while they differ in one configuration. */
export async function runShrink(options: Options): Promise<void> {
  const generator = options.files.length > 0 ? undefined : await generatorFor(sourceOf(options.seed, options));
  const modules = options.files.length > 0
    ? options.files.map((path) => new Uint8Array(readFileSync(path)))
    : modulesOf(
      options.seed,
      sourceOf(options.seed, options),
      options.features,
      generator,
      undefined,
      forcedOf(options.seed, options),
    );
  generator?.close();
  const failing = configurations(options.seed, options.tier).filter((o) =>
    compareModules(modules, options.seed, [o]).differences.length > 0
  );
  if (failing.length === 0) {
    console.log("Nothing differs");
    Deno.exit(1);
  }
  const config = [failing[0]];
  mkdirSync(options.out, { recursive: true });
  const save = (next: readonly Uint8Array[]) =>
    next.forEach((bytes, i) => writeFileSync(join(options.out, `small-${options.seed}.${i}.wasm`), bytes));
  const small = shrink(
    modules,
    (next) => compareModules(next, options.seed, config).differences.length > 0,
    (next) => {
      save(next);
      console.error(`${next.map((bytes) => bytes.length).join(" + ")} bytes`);
    },
  );
  console.log(JSON.stringify(config[0]));
  for (const { text } of compareModules(small, options.seed, config).differences) console.log(text);
  console.log(`Written to ${join(options.out, `small-${options.seed}.*.wasm`)}`);
  Deno.exit(0);
}
