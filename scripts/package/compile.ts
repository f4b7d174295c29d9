/**
 * Builds `waft` as a standalone executable: `deno task compile [--out FILE] [--target TRIPLE] [--denort DIR]`. In: this
 * tree. Out: FILE (dist/waft by default), after a check that it prints its version and runs examples/fib.wat.
 * `compileStandalone` does the same for the files of a bundle.
 *
 * `deno compile` appends the bundle's files to Deno's runtime binary (denort): DIR/denort-TRIPLE, the file that
 * DENORT_BIN names, Deno's cached copy, or a download. Without a runtime binary the task prints a message and fails
 * only if CI is set. Invariant: the same files and the same runtime binary give the same bytes, because the names,
 * times and order of the embedded files are fixed.
 */
import { spawnSync } from "node:child_process";
import { copyFileSync, existsSync, mkdirSync, mkdtempSync, rmSync, utimesSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import process from "node:process";
import { fileURLToPath } from "node:url";
import { VERSION } from "../../project/base/version_string.ts";
import { readTaskLine } from "../task_options.ts";
import { onCopy } from "./tree_copy.ts";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));

/** Inputs of a standalone executable. */
interface Standalone {
  /** The files of a bundle: `lib/waft.js` is the entry point; everything below `lib/` is embedded. */
  readonly files: ReadonlyMap<string, Uint8Array>;
  readonly out: string;
  /** The platform's name for `deno compile --target`; this machine's if absent. */
  readonly target?: string;
  /** A folder of runtime binaries, named `denort-TRIPLE`. */
  readonly denort?: string;
}

/** Compiles; returns undefined, or the reason if no runtime binary is available. Throws an Error for other failures. */
export function compileStandalone({ files, out, target, denort }: Standalone): string | undefined {
  const scratch = mkdtempSync(join(tmpdir(), "waft-compile-"));
  try {
    const folders = new Set<string>();
    for (const [path, bytes] of files) {
      if (!path.startsWith("lib/")) continue;
      const file = join(scratch, path);
      mkdirSync(dirname(file), { recursive: true });
      writeFileSync(file, bytes);
      // Modification times are embedded.
      utimesSync(file, 0, 0);
      for (let folder = dirname(file); folder !== scratch; folder = dirname(folder)) folders.add(folder);
    }
    for (const folder of folders) utimesSync(folder, 0, 0);
    const given = denort === undefined || target === undefined ? undefined : resolve(denort, `denort-${target}`);
    const args = ["compile", "--quiet", "--allow-all", "--no-check", "--no-config", "--no-lock", "--no-remote"];
    args.push("--no-npm", "--v8-flags=--min-semi-space-size=4", "--include", "lib", "--output", "waft");
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
      if (without !== undefined) return `Deno's runtime binary (denort) is not available: ${without.slice(0, 200)}`;
      throw new Error(`deno compile failed: ${error?.message ?? stderr}`);
    }
    mkdirSync(dirname(out), { recursive: true });
    copyFileSync(join(scratch, "waft"), out);
    return undefined;
  } finally {
    rmSync(scratch, { recursive: true, force: true });
  }
}

/** Bundles a copy of this tree, because bundling writes beside the sources. */
async function bundleOfCopy(): Promise<Map<string, Uint8Array>> {
  const { buildBundle } = await import("./release_bundle.ts");
  return onCopy(ROOT, (copy) => buildBundle(copy, VERSION, undefined));
}

function fail(message: string): never {
  console.error(`error: ${message}`);
  process.exit(1);
}

if (import.meta.main) {
  const { values } = readTaskLine({
    name: "task compile",
    about: "Builds waft as a standalone executable that needs no Deno, and runs it.",
    options: {
      out: { value: "FILE", help: "output file", default: "dist/waft" },
      target: { value: "TRIPLE", help: "target platform, such as aarch64-unknown-linux-gnu" },
      denort: { value: "DIR", help: "folder of Deno's runtime binaries, named denort-TRIPLE (see also DENORT_BIN)" },
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
    console.log(`${without}\nset DENORT_BIN to its path`);
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
