/**
 * Writes the pages of the API reference and the playground's compiler to docs/reference/, for packages:
 * `deno task build:reference`. In: the sources of the packages. Out: the files, and the number of pages on stdout.
 */
import process from "node:process";
import { writeReference } from "../../registry/site/reference/build.ts";
import { writeCompiler } from "../../registry/site/playground/build.ts";
import { readTaskLine } from "../task_options.ts";

readTaskLine({
  name: "task build:reference",
  about: "Writes the pages of the API reference and the playground's compiler to docs/reference/.",
  options: {},
});
try {
  await writeCompiler();
  console.log(`${await writeReference()} pages in docs/reference`);
} catch (error) {
  console.error(`error: ${(error as Error).message}`);
  process.exit(1);
}
