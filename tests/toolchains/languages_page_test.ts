/**
 * Follows docs/languages.md literally: saves sources under their names, runs the commands, and compares their output
 * with the next block. Each section runs if its compiler is installed; only C's runs outside `deno task
 * test:toolchains`, since the others take seconds.
 */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { fileURLToPath, pathToFileURL } from "node:url";
import { npmTool } from "./both_sides.ts";

const ROOT = fileURLToPath(new URL("../../", import.meta.url));
const PAGE = readFileSync(join(ROOT, "docs/languages.md"), "utf8");
const DENO = `"${process.execPath}" run -A --no-check`;

interface Block {
  readonly language: string;
  /** The name of the file to save it as, if any. */
  readonly file: string | undefined;
  readonly text: string;
}

/** The blocks of each section, by its title. */
const SECTIONS = new Map(
  PAGE.split(/^## /m).slice(1).map((section) => [
    section.slice(0, section.indexOf("\n")),
    [...section.matchAll(/^```([^\n]*)\n([\s\S]*?)^```$/gm)].map(([, info, text]): Block => {
      const [language, ...words] = info.split(" ");
      return { language: language, file: words.find((w) => w !== "ignore"), text: text };
    }),
  ]),
);

const succeeds = (command: string, ...args: string[]): boolean => spawnSync(command, args).status === 0;
const toolchains = process.env["WASM_TOOLCHAINS"];

/** A rustc with a library for the target, which the default toolchain may lack. */
function rustc(): string | undefined {
  return ["rustc", "/usr/bin/rustc"].find((path) => {
    const { status, stdout } = spawnSync(path, ["--print", "target-libdir", "--target", "wasm32-unknown-unknown"], {
      encoding: "utf8",
    });
    return status === 0 && existsSync(stdout.trim());
  });
}

/** A command in the folder of shims: its script, or undefined if the tool is not installed. */
interface Tool {
  readonly section: string;
  readonly name: string;
  readonly script: () => string | undefined;
}

const TOOLS: readonly Tool[] = [
  {
    section: "Rust",
    name: "rustc",
    script: () => {
      const path = rustc();
      // Compilers before 1.78 call the target wasm32-wasi.
      const isOld = path !== undefined && /^rustc 1\.(?:[1-6][0-9]|7[0-7])\./.test(
        spawnSync(path, ["--version"], { encoding: "utf8" }).stdout,
      );
      return path && `exec ${path} $(echo "$@" | sed s/wasm32-wasip1/${isOld ? "wasm32-wasi" : "wasm32-wasip1"}/)`;
    },
  },
  { section: "Go", name: "go", script: () => succeeds("go", "version") ? `exec "${which("go")}" "$@"` : undefined },
  {
    section: "C and C++",
    name: "clang",
    script: () => existsSync("/usr/lib/wasm32-wasi") && which("clang") ? `exec "${which("clang")}" "$@"` : undefined,
  },
  {
    section: "AssemblyScript",
    name: "npx",
    script: () => {
      const tool = npmTool("assemblyscript");
      return tool && `[ "$1" = asc ] && shift && exec node "${tool}/bin/asc.js" "$@"`;
    },
  },
  {
    section: "Zig",
    name: "zig",
    script: () => {
      const python = join(toolchains ?? "", "python/bin/python");
      return existsSync(python) ? `exec "${python}" -m ziglang "$@"` : undefined;
    },
  },
];

function which(name: string): string | undefined {
  const { status, stdout } = spawnSync("sh", ["-c", `command -v ${name}`], { encoding: "utf8" });
  return status === 0 ? stdout.trim() : undefined;
}

const MICROPYTHON = "@micropython/micropython-webassembly-pyscript";

/** A folder with the shims, and a map of the packages that the programs of the page import. */
function prepare(folder: string): NodeJS.ProcessEnv {
  const shim = (name: string, script: string): void =>
    writeFileSync(join(folder, name), `#!/bin/sh\n${script}\n`, { mode: 0o755 });
  shim("waft", `exec ${DENO} "${join(ROOT, "cli.ts")}" "$@"`);
  for (const { name, script } of TOOLS) {
    const text = script();
    if (text !== undefined) shim(name, text);
  }
  const imports: { [specifier: string]: string } = {};
  for (const part of ["engine", "component"]) {
    const { exports } = JSON.parse(readFileSync(join(ROOT, part, "deno.json"), "utf8")) as {
      exports: { readonly [entry: string]: string };
    };
    for (const [entry, path] of Object.entries(exports)) {
      imports[entry.replace(/^\./, `@waft/${part}`)] = pathToFileURL(join(ROOT, part, path)).href;
    }
  }
  const python = npmTool(MICROPYTHON);
  if (python !== undefined) imports[`${MICROPYTHON}/`] = `${pathToFileURL(python).href}/`;
  writeFileSync(join(folder, "imports.json"), JSON.stringify({ imports }));
  return { ...process.env, PATH: `${folder}:${process.env["PATH"]}`, WAFT_HOME: join(folder, "home") };
}

function sh(line: string, cwd: string, env: NodeJS.ProcessEnv): string {
  const { status, stdout, stderr } = spawnSync("sh", ["-ec", line], { cwd, env, encoding: "utf8", timeout: 300_000 });
  assert.equal(status, 0, `${line}\n${stdout}${stderr}`);
  return stdout;
}

/** Follows a section; the last section's program runs the existing module. */
function follow(title: string): void {
  const folder = mkdtempSync(join(tmpdir(), "waft-languages-"));
  try {
    const env = prepare(folder);
    let printed = "";
    for (const { language, file, text } of SECTIONS.get(title)!) {
      if (file !== undefined) writeFileSync(join(folder, file), text);
      else if (language === "sh") printed = sh(text, folder, env);
      else if (language === "text") assert.equal(printed, text, title);
      if (file === "python.ts") assert.equal(runProgram(file, folder, env), "21\n");
    }
    if (!existsSync(join(folder, "gcd.wasm"))) return;
    const host = SECTIONS.get("On each host")!.find((b) => b.file === "host.ts")!;
    writeFileSync(join(folder, "host.ts"), host.text);
    assert.equal(runProgram("host.ts", folder, env), "21\n", title);
  } finally {
    rmSync(folder, { recursive: true });
  }
}

function runProgram(file: string, folder: string, env: NodeJS.ProcessEnv): string {
  return sh(`${DENO} --import-map imports.json ${file}`, folder, env);
}

for (const title of SECTIONS.keys()) {
  if (title === "On each host") continue;
  const tool = TOOLS.find((t) => t.section === title);
  const isQuick = title === "C and C++";
  const isHere = tool === undefined ? npmTool(MICROPYTHON) !== undefined : tool.script() !== undefined;
  const ignore = !isHere || (toolchains === undefined && !isQuick);
  const why = isHere ? "deno task test:toolchains" : `${tool?.name ?? MICROPYTHON} is not here`;
  Deno.test({
    name: `docs/languages.md: ${title}${ignore ? ` (ignored: ${why})` : ""}`,
    ignore,
    fn: () => follow(title),
  });
}
