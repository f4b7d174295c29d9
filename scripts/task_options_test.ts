/**
 * The command lines of tasks: parsing, and that every script task of deno.json answers --help and refuses unknown
 * options.
 */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import process from "node:process";
import { fileURLToPath } from "node:url";
import { readTaskLine, usageOf } from "./task_options.ts";

const ROOT = fileURLToPath(new URL("..", import.meta.url));

const TASK = {
  name: "task sample",
  about: "An example.",
  operands: "FILE [NAME]",
  options: {
    fast: { help: "does less" },
    count: { value: "N", least: 1, help: "how many", default: "3" },
    kind: { value: "NAME", words: ["small", "large"], help: "which" },
    sizes: { value: "N", least: 0, help: "some", many: true },
    out: { value: "DIR", help: "where" },
    set: { value: "KEY", help: "more", many: true },
    child: { help: "not shown", hidden: true },
  },
} as const;

Deno.test("readTaskLine() parses values, defaults, repeated options and operands", () => {
  assert.deepEqual(readTaskLine(TASK, ["a.wasm"]), {
    values: { fast: false, count: 3, kind: undefined, sizes: [], out: undefined, set: [], child: false, help: false },
    operands: ["a.wasm"],
  });
  const { values, operands } = readTaskLine(TASK, ["--count=5", "a", "--set", "x", "--fast", "b", "--set", "y"]);
  assert.deepEqual([values.count, values.fast, values.set, operands], [5, true, ["x", "y"], ["a", "b"]]);
  const { values: { kind, sizes } } = readTaskLine(TASK, ["--kind", "large", "--sizes", "4", "a", "--sizes", "0"]);
  assert.deepEqual([kind, sizes], ["large", [4, 0]]);
  assert.equal(
    usageOf(TASK),
    `usage: deno task sample [options] FILE [NAME]

An example.

  --fast       does less
  --count N    how many (3)
  --kind NAME  which
  --sizes N    some
  --out DIR    where
  --set KEY    more`,
  );
});

/** Runs a script; returns its status and output. */
function run(script: string, ...args: string[]): Promise<{ status: number | null; out: string; err: string }> {
  const child = spawn(process.execPath, ["run", "-A", "--no-check", script, ...args], { cwd: ROOT });
  let [out, err] = ["", ""];
  child.stdout.on("data", (text) => out += text);
  child.stderr.on("data", (text) => err += text);
  return new Promise((resolve) => child.on("close", (status) => resolve({ status, out, err })));
}

/** Tasks that parse their command lines with commander. */
const OTHERS = ["waft", "registry"];

Deno.test("every script answers --help and refuses unknown options with status 2", async () => {
  const { tasks } = JSON.parse(readFileSync(join(ROOT, "deno.json"), "utf8")) as { tasks: Record<string, string> };
  const scripts = Object.entries(tasks).flatMap(([name, command]) => {
    const script = /^deno run .*?(\S+\.ts)$/.exec(command)?.[1];
    return script === undefined || OTHERS.includes(name) ? [] : [[name, script] as const];
  });
  assert.ok(scripts.length >= 14, String(scripts));
  const others = ["scripts/hosts/arm64_emulator.ts", "scripts/measure/compare_targets.ts"].map((script) =>
    [`run -A ${script}`, script] as const
  );
  const waiting = [...scripts.map(([name, script]) => [`task ${name}`, script] as const), ...others];
  const work = async (): Promise<void> => {
    for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) {
      const [name, script] = next;
      const help = await run(script, "--help");
      assert.equal(help.status, 0, `${name}: ${help.err}`);
      assert.match(help.out, new RegExp(`^usage: deno ${name}(?: |\n)`), name);
      assert.equal(help.err, "", name);
      const unknown = await run(script, "--no-such-option");
      assert.equal(unknown.status, 2, `${name}: ${unknown.err}`);
      assert.equal(unknown.err, `deno ${name}: Unknown option '--no-such-option'; see --help\n`);
    }
  };
  await Promise.all([work(), work()]);
});

Deno.test("text in place of a number or of a known word is refused with status 2", async () => {
  const agree = await run("scripts/fuzz/agree.ts", "--count", "some");
  const message = "deno task agree: --count takes a whole number of at least 1, not 'some'; see --help\n";
  assert.deepEqual(agree, { status: 2, out: "", err: message });
  const { status, err } = await run("scripts/hosts/test_hosts.ts", "--host", "bun", "--host", "other");
  assert.equal(status, 2);
  assert.equal(err, "deno task test:hosts: --host takes one of node20, node, bun, not 'other'; see --help\n");
});

Deno.test("every option of a task whose value is a number has a least value", () => {
  const files = ["scripts", "bench", "registry"].flatMap((folder) =>
    readdirSync(join(ROOT, folder), { recursive: true, encoding: "utf8" }).map((name) => join(folder, name))
  ).filter((name) => /\.ts$/.test(name) && !/_test\.ts$/.test(name));
  const rows = files.flatMap((file) =>
    [...readFileSync(join(ROOT, file), "utf8").matchAll(/value: "N",(\s+\w+)/g)].map(([, next]) => [file, next.trim()])
  );
  assert.ok(rows.length > 15, String(rows.length));
  assert.deepEqual(rows.filter(([, next]) => next !== "least"), []);
});
