/**
 * Follows docs/components.md: saves sources under their names, runs the commands and the program, and compares their
 * output with the next block. The sections on commands, hosts and core modules need nothing else; each language's
 * section runs if its compiler is on this machine or in the folder WASM_TOOLCHAINS (install.sh).
 */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { fileURLToPath } from "node:url";

const ROOT = fileURLToPath(new URL("../../", import.meta.url));
const DENO = `"${process.execPath}" run -A --no-check`;
const TOOLCHAINS = process.env["WASM_TOOLCHAINS"];
const [INTRODUCTION, ...SECTIONS] = readFileSync(join(ROOT, "docs/components.md"), "utf8").split(/^## /m);

interface Block {
  readonly language: string;
  /** The name of the file to save it as, if any. */
  readonly file: string | undefined;
  readonly text: string;
  /** Lines of a shell that need more than the page says. */
  readonly isExample: boolean;
}

function blocksOf(text: string): Block[] {
  return [...text.matchAll(/^```([^\n]*)\n([\s\S]*?)^```$/gm)].map(([, info, text]) => {
    const [language, ...words] = info.split(" ");
    const file = words.find((word) => word !== "ignore");
    return { language, file, text, isExample: file === undefined && words.includes("ignore") };
  });
}

/** The requirements of each language's section: the folder of compilers, and the machine. */
const NEEDS: Readonly<Record<string, { readonly file?: string; readonly has?: () => boolean }>> = {
  C: { has: () => spawnSync("clang", ["--version"]).status === 0 },
  Rust: { has: () => RUST !== undefined },
  Python: { file: "python/bin/componentize-py" },
  JavaScript: { file: "node_modules/@bytecodealliance/componentize-js" },
};

/** A rustc with a library for the target, which the default toolchain may lack. */
const RUST = ["rustc", "/usr/bin/rustc"].find((path) => {
  const args = ["--print", "target-libdir", "--target", "wasm32-unknown-unknown"];
  const { status, stdout } = spawnSync(path, args, { encoding: "utf8" });
  return status === 0 && existsSync(stdout.trim());
});

function sh(line: string, folder: string): string {
  const shims = `waft() { ${DENO} "${join(ROOT, "cli.ts")}" "$@"; }; rustc() { command ${RUST} "$@"; }; ` +
    `PATH="${TOOLCHAINS ?? ""}/python/bin:$PATH"; `;
  const { status, stdout, stderr } = spawnSync("sh", ["-ec", shims + line], {
    cwd: folder,
    encoding: "utf8",
    env: { ...process.env, WAFT_HOME: join(folder, "home") },
    timeout: 600_000,
  });
  assert.equal(status, 0, `${line}\n${stdout}${stderr}`);
  return stdout;
}

function follow(blocks: readonly Block[]): void {
  const folder = mkdtempSync(join(tmpdir(), "waft-components-"));
  try {
    if (TOOLCHAINS !== undefined && existsSync(join(TOOLCHAINS, "node_modules"))) {
      symlinkSync(join(TOOLCHAINS, "node_modules"), join(folder, "node_modules"));
    }
    let printed = "";
    let compared = 0;
    for (const { language, file, text, isExample } of blocks) {
      if (isExample) continue;
      if (file === "host.ts") {
        writeFileSync(join(folder, file), text);
        printed = sh(`${DENO} --config "${join(ROOT, "deno.json")}" host.ts`, folder);
      } else if (file === "modules.mjs") {
        writeFileSync(join(folder, file), text);
        const preload = join(ROOT, "component/install/mod.ts");
        printed = sh(`${DENO} --quiet --config "${join(ROOT, "deno.json")}" --preload "${preload}" ${file}`, folder);
      } else if (file !== undefined) writeFileSync(join(folder, file), text);
      else if (language === "sh") printed = sh(text, folder);
      else if (language === "text") {
        assert.equal(printed, text);
        compared++;
      }
    }
    assert.ok(compared > 0);
  } finally {
    rmSync(folder, { recursive: true });
  }
}

function section(title: string): Block[] {
  return blocksOf(SECTIONS.find((text) => text.startsWith(`${title}\n`))!);
}

Deno.test("docs/components.md: commands, and the program for each host", () => {
  follow([...blocksOf(INTRODUCTION), ...section("Commands"), ...section("On each host")]);
});

Deno.test("docs/components.md: components as modules", () => {
  follow([...blocksOf(INTRODUCTION), ...section("Components as modules")]);
});

Deno.test("docs/components.md: components of core modules, and compositions", () => {
  follow(section("Components of core modules"));
});

for (const [title, { file, has = () => true }] of Object.entries(NEEDS)) {
  const installed = file === undefined || (TOOLCHAINS !== undefined && existsSync(join(TOOLCHAINS, file)));
  const present = installed && has();
  Deno.test({
    name: `docs/components.md: ${title}${present ? "" : " (ignored: deno task test:toolchains has the compiler)"}`,
    ignore: !present,
    fn: () => follow(section(title)),
  });
}
