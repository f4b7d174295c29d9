/**
 * Makes `waft` one program that needs no Deno: `deno task compile [--out FILE] [--target TRIPLE] [--denort DIR]`. In: this tree. Out: FILE (dist/waft
 * by default), run once: it must say its version and compute 10 Fibonacci numbers. `compileStandalone` does it for a bundle's files.
 *
 * `deno compile` puts the bundle's files behind Deno's runtime binary (denort). That is DIR/denort-TRIPLE, or what DENORT_BIN names, or what Deno has
 * fetched before, or fetches; where none is to be had, this says so, and it is a failure only with CI set. The same files and the same
 * runtime binary give the same bytes: names, times and order of what is embedded are fixed.
 */
import { spawnSync } from "node:child_process";
import { copyFileSync, cpSync, existsSync, mkdirSync, mkdtempSync, rmSync, utimesSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, relative, resolve } from "node:path";
import process from "node:process";
import { fileURLToPath } from "node:url";
import { VERSION } from "../project/base/version_string.ts";
import { readTaskLine } from "./task_options.ts";

const ROOT = fileURLToPath(new URL("..", import.meta.url));

/** What a compiled program is made of. */
export interface Standalone {
  /** A bundle's files: the module `lib/waft.js` is started, all below `lib/` is embedded. */
  readonly files: ReadonlyMap<string, Uint8Array>;
  readonly out: string;
  /** What `deno compile --target` calls the platform; this machine's when absent. */
  readonly target?: string;
  /** A folder with runtime binaries, named `denort-TRIPLE`. */
  readonly denort?: string;
}

/** Compiles; the reason when there is no runtime binary, undefined when it is done. Other failures are Errors. */
export function compileStandalone({ files, out, target, denort }: Standalone): string | undefined {
  const scratch = mkdtempSync(join(tmpdir(), "waft-compile-"));
  try {
    const folders = new Set<string>();
    for (const [path, bytes] of files) {
      if (!path.startsWith("lib/")) continue;
      const file = join(scratch, path);
      mkdirSync(dirname(file), { recursive: true });
      writeFileSync(file, bytes);
      // Times are embedded, too.
      utimesSync(file, 0, 0);
      for (let folder = dirname(file); folder !== scratch; folder = dirname(folder)) folders.add(folder);
    }
    for (const folder of folders) utimesSync(folder, 0, 0);
    const given = denort === undefined || target === undefined ? undefined : resolve(denort, `denort-${target}`);
    const args = ["compile", "--quiet", "--allow-all", "--no-check", "--no-config", "--no-lock", "--no-remote"];
    args.push("--no-npm", "--include", "lib", "--output", "waft");
    if (target !== undefined) args.push("--target", target);
    const { status, stderr, error } = spawnSync(process.execPath, [...args, "lib/waft.js"], {
      cwd: scratch,
      encoding: "utf8",
      timeout: 600_000,
      env: {
        ...process.env,
        NO_COLOR: "1",
        ...(given !== undefined && existsSync(given) ? { DENORT_BIN: given } : {}),
      },
    });
    if (status !== 0) {
      const lines = stderr.split("\n").map((line) => line.trim().replace(/^[0-9]+: /, ""));
      const without = lines.find((line) => /error sending request|denort/i.test(line)) ??
        lines.find((line) => /Setting up base binary/.test(line));
      if (without !== undefined) return `Deno's runtime binary (denort) is not at hand: ${without.slice(0, 200)}`;
      throw new Error(`deno compile failed: ${error?.message ?? stderr}`);
    }
    mkdirSync(dirname(out), { recursive: true });
    copyFileSync(join(scratch, "waft"), out);
    return undefined;
  } finally {
    rmSync(scratch, { recursive: true, force: true });
  }
}

/** The bundle of this tree, made of a copy, since bundling writes beside the sources. */
async function bundleOfCopy(): Promise<Map<string, Uint8Array>> {
  const { buildBundle } = await import("./release_bundle.ts");
  const copy = mkdtempSync(join(tmpdir(), "waft-tree-"));
  try {
    cpSync(ROOT, copy, {
      recursive: true,
      filter: (path) => ![".git", "node_modules", "dist"].includes(relative(ROOT, path)),
    });
    return buildBundle(copy, VERSION, undefined);
  } finally {
    rmSync(copy, { recursive: true, force: true });
  }
}

function fail(message: string): never {
  console.error(`error: ${message}`);
  process.exit(1);
}

if (import.meta.main) {
  const { values } = readTaskLine({
    name: "task compile",
    about: "Makes waft one program that needs no Deno, and starts it.",
    options: {
      out: { value: "FILE", help: "where it goes", default: "dist/waft" },
      target: { value: "TRIPLE", help: "for another machine, such as aarch64-unknown-linux-gnu" },
      denort: { value: "DIR", help: "where Deno's runtime binaries are, as denort-TRIPLE; also DENORT_BIN" },
    },
  });
  const out = resolve(ROOT, values.out);
  const without = compileStandalone({
    files: await bundleOfCopy(),
    out,
    ...(values.target === undefined ? {} : { target: values.target }),
    ...(values.denort === undefined ? {} : { denort: values.denort }),
  });
  if (without !== undefined) {
    console.log(`${without}\nset DENORT_BIN to one`);
    process.exit(process.env["CI"] === undefined ? 0 : 1);
  }
  if (values.target === undefined) {
    for (const [words, expected] of [[["--version"], VERSION], [["run", "examples/fib.wat", "10"], "55"]] as const) {
      const { status, stdout, stderr } = spawnSync(out, words, { cwd: ROOT, encoding: "utf8", timeout: 60_000 });
      if (status !== 0 || stdout.trim() !== expected) {
        const gave = `${JSON.stringify(stdout)} and status ${status}`;
        fail(`${out} ${words.join(" ")} gave ${gave}, not "${expected}":\n${stderr}`);
      }
    }
  }
  console.log(out);
}
