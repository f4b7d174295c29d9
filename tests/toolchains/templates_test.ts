/**
 * The templates of `waft init`: each makes a project whose files fit together, and the commands that its README names
 * build, run and test it. C and Rust run where their compilers are installed; the packages of npm that the other
 * templates need are not published.
 */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import process from "node:process";
import { fileURLToPath } from "node:url";
import { packageId, TEMPLATES } from "../../project/ops/project/templates.ts";
import { HANG_MS } from "../support/hang.ts";
import { hostArguments } from "../support/host_arguments.ts";
import { removeFolder } from "../support/remove_folder.ts";

const CLI = fileURLToPath(new URL("../../cli.ts", import.meta.url));

interface Run {
  readonly status: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs a line of a shell in a folder whose parent has the command `waft`. */
function sh(line: string, folder: string): Run {
  const PATH = `${join(folder, "..", "bin")}${delimiter}${process.env["PATH"]}`;
  const env = { ...process.env, PATH, WAFT_HOME: join(folder, "..", "home"), NO_COLOR: "1" };
  return spawnSync("sh", ["-c", line], { cwd: folder, encoding: "utf8", env, timeout: HANG_MS });
}

/** Makes a project of a template in a new folder. */
function withProject(template: string, run: (folder: string) => void): void {
  const home = mkdtempSync(join(tmpdir(), "waft-template-"));
  const folder = join(home, "My Program 2");
  try {
    for (const name of [join(home, "bin"), folder]) mkdirSync(name);
    const words = [process.execPath, ...hostArguments(CLI)].map((word) => `'${word}'`).join(" ");
    writeFileSync(join(home, "bin", "waft"), `#!/bin/sh\nexec ${words} "$@"\n`, { mode: 0o755 });
    const { status, stdout, stderr } = sh(`waft init --template ${template}`, folder);
    assert.equal(status, 0, stderr);
    assert.match(stdout, /^created \.gitignore$/m);
    run(folder);
  } finally {
    removeFolder(home);
  }
}

Deno.test("every template makes a project with a name for packages and its commands in the README", () => {
  for (const { name, commands } of TEMPLATES) {
    withProject(name, (folder) => {
      const read = (path: string) => readFileSync(join(folder, path), "utf8");
      assert.match(read("README.md"), /^# My Program 2\n/);
      for (const command of commands) assert.ok(read("README.md").includes(`\n${command}\n`), command);
      const files = readdirSync(folder);
      if (files.includes("package.json")) {
        const { name: id, scripts } = JSON.parse(read("package.json")) as { name: string; scripts: object };
        assert.equal(id, "my-program-2");
        for (const command of commands) {
          const script = /^npm (?:run )?(\w+)$/.exec(command)?.[1];
          assert.ok(script === "install" || Object.hasOwn(scripts, script!), command);
        }
      }
      if (files.includes("Cargo.toml")) assert.match(read("Cargo.toml"), /^name = "my-program-2"$/m);
      const again = sh(`waft init --template ${name}`, folder);
      assert.equal(again.status, 3, again.stderr);
      assert.match(again.stderr, /project\.exists/);
    });
  }
  assert.deepEqual(["3D!", "--", "Ünder score", "a"].map(packageId), ["d", "program", "nder-score", "a"]);
});

Deno.test("an unknown template is refused, with the names of all templates", () => {
  const { status, stderr } = spawnSync(process.execPath, [...hostArguments(CLI), "init", "--template", "cobol"], {
    cwd: tmpdir(),
    encoding: "utf8",
  });
  assert.equal(status, 2);
  assert.match(
    stderr,
    /there is no template "cobol"\n {2}help: the templates are typescript, assemblyscript, c, rust, http/,
  );
});

const has = (command: string, ...args: string[]) => spawnSync(command, args).status === 0;
const TOOLS: readonly (readonly [template: string, isThere: boolean, needs: string])[] = [
  [
    "c",
    has("clang", "--version") && has("wasm-ld", "--version") && has("make", "--version"),
    "clang, wasm-ld and make",
  ],
  ["rust", hasRustTarget("wasm32-wasip1"), "cargo with the target wasm32-wasip1"],
];

function hasRustTarget(target: string): boolean {
  if (!has("cargo", "--version")) return false;
  const { status, stdout } = spawnSync("rustc", ["--print", "target-libdir", "--target", target], { encoding: "utf8" });
  return status === 0 && has("ls", stdout.trim());
}

for (const [template, isThere, needs] of TOOLS) {
  Deno.test({
    name: `the commands of the template ${template}${isThere ? "" : ` (ignored: ${needs} are needed)`}`,
    ignore: !isThere,
    fn() {
      withProject(template, (folder) => {
        for (const command of TEMPLATES.find(({ name }) => name === template)!.commands) {
          const { status, stdout, stderr } = sh(command, folder);
          assert.equal(status, 0, `${command}\n${stdout}${stderr}`);
          if (/ run\b/.test(command)) assert.match(stdout, /^21$/m);
        }
        // A wrong program fails its tests.
        const source = template === "c" ? "src/module.c" : "src/main.rs";
        const path = join(folder, source);
        writeFileSync(path, readFileSync(path, "utf8").replace("a % b", "a / b"));
        const test = TEMPLATES.find(({ name }) => name === template)!.commands.at(-1)!;
        assert.notEqual(sh(test, folder).status, 0);
      });
    },
  });
}
