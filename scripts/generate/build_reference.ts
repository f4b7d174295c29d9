/**
 * Writes the pages of the API reference to docs/reference/, for packages: `deno task build:reference`. In: the engine's
 * sources. Out: the pages, and their number on stdout.
 */
import process from "node:process";
import { writeReference } from "../../registry/site/reference/build.ts";
import { readTaskLine } from "../task_options.ts";

readTaskLine({
  name: "task build:reference",
  about: "Writes the pages of the API reference to docs/reference/.",
  options: {},
});
try {
  console.log(`${await writeReference()} pages in docs/reference`);
} catch (error) {
  console.error(`error: ${(error as Error).message}`);
  process.exit(1);
}
