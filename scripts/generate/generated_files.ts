/**
 * Files of the tree that a task generates. In: their texts by path below a folder. Out: the paths of those that are
 * missing or outdated, which the task writes, or with `--check` only reports, with status 1.
 */
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { readTaskLine } from "../task_options.ts";

/** Paths of missing or outdated files. */
export function outOfDate(folder: URL, files: ReadonlyMap<string, string>): string[] {
  return [...files].filter(([path, text]) => {
    const file = new URL(path, folder);
    return !existsSync(file) || readFileSync(file, "utf8") !== text;
  }).map(([path]) => path);
}

/** Runs the task `name`; returns its exit status. `prefix` is the folder in messages. */
export async function runGenerator(
  name: string,
  about: string,
  prefix: string,
  folder: URL,
  generate: () => ReadonlyMap<string, string> | Promise<ReadonlyMap<string, string>>,
): Promise<number> {
  const { values: { check } } = readTaskLine({
    name,
    about,
    options: { check: { help: "write nothing; status 1 if a file is outdated" } },
  });
  const files = await generate();
  const old = outOfDate(folder, files);
  for (const [path, text] of files) {
    if (!old.includes(path)) continue;
    console.log(`${check ? "out of date" : "written"}: ${prefix}${path}`);
    if (!check) writeFileSync(new URL(path, folder), text);
  }
  return check && old.length > 0 ? 1 : 0;
}
