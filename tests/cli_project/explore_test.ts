/**
 * `waft explore` as a process: the content of its pages, the choice of functions, hostile names, source files,
 * refusals.
 */
import assert from "node:assert/strict";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { spawnSync } from "node:child_process";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { fileURLToPath } from "node:url";
import { hostArguments } from "../support/host_arguments.ts";
import { longNameModule } from "../support/long_name.ts";
import { LACKS_POSIX_FILES } from "../support/posix_files.ts";
import { packedBlock, type PageBody, pageIndex, stageLines } from "./explored_page.ts";
import { CHILD_TIMEOUT } from "../support/host_arguments.ts";

const CLI = fileURLToPath(new URL("../../cli.ts", import.meta.url));

function inFolder(run: (folder: string, waft: (...args: string[]) => ReturnType<typeof waftIn>) => void): void {
  const folder = mkdtempSync(join(tmpdir(), "explore-"));
  try {
    run(folder, (...args) => waftIn(folder, args));
  } finally {
    rmSync(folder, { recursive: true });
  }
}

function waftIn(cwd: string, args: string[]): { status: number | null; stdout: string; stderr: string } {
  const options = {
    cwd,
    encoding: "utf8",
    timeout: CHILD_TIMEOUT,
    env: { ...process.env, WAFT_HOME: join(cwd, "home") },
  } as const;
  const { status, stdout, stderr } = spawnSync(process.execPath, [...hostArguments(CLI), ...args], options);
  return { status, stdout, stderr };
}

const MODULE = `(module
  (func $double (param i32) (result i32) (i32.shl (local.get 0) (i32.const 1)))
  (func $other (nop))
  (func (export "run") (param i32) (result i32) (i32.add (call $double (local.get 0)) (i32.const 5))))`;

Deno.test("a page has every function in all stages", () => {
  inFolder((folder, waft) => {
    writeFileSync(join(folder, "m.wat"), MODULE);
    assert.deepEqual(waft("explore", "m.wat"), { status: 0, stdout: "m.html: 3 functions\n", stderr: "" });
    const html = readFileSync(join(folder, "m.html"), "utf8");
    assert.deepEqual(pageIndex(html).functions.map(([at, label, , included]) => [at, label, included]), [
      [0, "$double", 1],
      [1, "$other", 1],
      [2, "$run", 1],
    ]);
    assert.match(stageLines(html, 2, "text").join("\n"), /call \$double/);
    assert.match(stageLines(html, 2, "translated").join("\n"), /= SHL /);
    assert.match(stageLines(html, 2, "x64 optimizing").join("\n"), /lea eax, \[2\*rax \+ 5\]|add eax, 5/);
    assert.match(stageLines(html, 2, "x64 baseline").join("\n"), /call \$double/);
    assert.match(stageLines(html, 2, "arm64 optimizing").join("\n"), /add w0, w\d, #5/);
    assert.match(stageLines(html, 2, "arm64 baseline").join("\n"), /bl .*; \$double/);
  });
});

Deno.test("chosen functions alone are in the page; the others name the command that shows them", () => {
  inFolder((folder, waft) => {
    writeFileSync(join(folder, "m.wat"), MODULE);
    const { stdout } = waft("explore", "m.wat", "--function", "doub", "--function", "2", "-o", "page");
    assert.equal(stdout, "page: 2 of 3 functions\n");
    const html = readFileSync(join(folder, "page"), "utf8");
    const index = pageIndex(html);
    assert.deepEqual(index.functions.map((row) => row[3]), [1, 0, 1]);
    assert.match(index.absent, /waft explore --function INDEX m\.wat$/);
    assert.throws(() => packedBlock(html, "f1"));
    const wrong = waft("explore", "m.wat", "--function", "nothing");
    assert.deepEqual([wrong.status, wrong.stderr], [
      2,
      'waft: --function "nothing": the module defines no such function\n',
    ]);
  });
});

Deno.test("names of the module cannot become markup, and have no invisible characters", () => {
  inFolder((folder, waft) => {
    const name = "</script><img src=x onerror=alert(1)>\\u{202e}abc\\u{2028}";
    const file = LACKS_POSIX_FILES ? "b.wat" : "<b>.wat"; // Windows has no names with these characters
    writeFileSync(join(folder, file), `(module (func (@name "${name}") (export "${name}")))`);
    const { status, stderr } = waft("explore", file, "-o", "m.html");
    assert.deepEqual([status, stderr], [0, ""]);
    const html = readFileSync(join(folder, "m.html"), "utf8");
    assert.ok(!html.includes("<img") && !html.includes("<b>.wat"));
    assert.equal(html.match(/<\/script>/g)?.length, 3, "the list, one body, the script");
    assert.ok(!/[\u202e\u2028]/.test(html));
    const [row] = pageIndex(html).functions;
    assert.equal(row?.[1], "$</script><img src=x onerror=alert(1)>\\u{202e}abc\\u{2028}");
    assert.ok(!/[\u202e\u2028]/.test(packedBlock<PageBody>(html, "f0").texts.join("")));
  });
});

/** A module whose only instruction has the place `file`, line 1, by a source map beside it. */
function mapped(folder: string, file: string, more: object = {}): void {
  const url = "m.wasm.map";
  const section = [url.length, ...new TextEncoder().encode(url)].map((byte) =>
    `\\${byte.toString(16).padStart(2, "0")}`
  );
  writeFileSync(
    join(folder, "m.wat"),
    `(module (func (export "f") nop) (@custom "sourceMappingURL" "${section.join("")}"))`,
  );
  writeFileSync(
    join(folder, url),
    JSON.stringify({ version: 3, sources: [file], mappings: "AAAA", names: [], ...more }),
  );
}

Deno.test("sources come from the source map, or from the directory that the user names, and nowhere else", () => {
  inFolder((folder, waft) => {
    const sources = (...args: string[]): Record<string, string> => {
      assert.equal(waft("explore", "m.wat", "-o", "m.html", ...args).status, 0);
      const html = readFileSync(join(folder, "m.html"), "utf8");
      return html.includes('id="sources"') ? packedBlock(html, "sources") : {};
    };
    mapped(folder, "a.ts", { sourcesContent: ["from the map"] });
    assert.deepEqual(sources(), { 0: "from the map" });
    mkdirSync(join(folder, "src/deep"), { recursive: true });
    writeFileSync(join(folder, "src/deep/a.ts"), "from the directory");
    writeFileSync(join(folder, "secret"), "a secret");
    symlinkSync(join(folder, "secret"), join(folder, "src/link"));
    mapped(folder, "/build/machine/deep/a.ts");
    assert.deepEqual(sources(), {});
    assert.deepEqual(sources("--sources", "src"), { 0: "from the directory" });
    for (const hostile of ["../secret", join(folder, "secret"), "link", "deep/../../secret", "..", ""]) {
      mapped(folder, hostile);
      assert.deepEqual(sources("--sources", "src"), {}, hostile);
    }
  });
});

Deno.test("many names of one large source do not make a page that is too large", () => {
  inFolder((folder, waft) => {
    const names = Array.from({ length: 200 }, (_, k) => `${k}/a.ts`);
    // Each byte of the module is in the next source.
    mapped(folder, "", { sources: names, mappings: names.map((_, k) => k === 0 ? "AAAA" : "CCAA").join() });
    const body = "nop ".repeat(100);
    const text = readFileSync(join(folder, "m.wat"), "utf8");
    writeFileSync(join(folder, "m.wat"), text.replace("nop", body));
    mkdirSync(join(folder, "src"));
    writeFileSync(join(folder, "src/a.ts"), "a".repeat(1 << 20));
    const { status, stderr } = waft("explore", "m.wat", "-o", "m.html", "--sources", "src");
    assert.equal(status, 0, stderr);
    const html = readFileSync(join(folder, "m.html"), "utf8");
    assert.ok(pageIndex(html).files.length > 50);
    assert.equal(Object.keys(packedBlock<object>(html, "sources")).length, 32);
  });
});

Deno.test("a source map elsewhere is not read", () => {
  inFolder((folder, waft) => {
    mkdirSync(join(folder, "inner"));
    mapped(folder, "a.ts", { sourcesContent: ["outside"] });
    const text = readFileSync(join(folder, "m.wat"), "utf8").replace('"\\0a', '"\\0d\\2e\\2e\\2f');
    writeFileSync(join(folder, "inner/m.wat"), text);
    assert.equal(waft("explore", "inner/m.wat").status, 0);
    assert.deepEqual(pageIndex(readFileSync(join(folder, "m.html"), "utf8")).files, []);
  });
});

Deno.test({
  name: "a source map that is a pipe is not read, because reading it would never end",
  ignore: process.platform === "win32",
  fn: () =>
    inFolder((folder, waft) => {
      mapped(folder, "a.ts", { sourcesContent: ["from the map"] });
      rmSync(join(folder, "m.wasm.map"));
      assert.equal(spawnSync("mkfifo", [join(folder, "m.wasm.map")]).status, 0);
      assert.equal(waft("explore", "m.wat").status, 0);
      assert.deepEqual(pageIndex(readFileSync(join(folder, "m.html"), "utf8")).files, []);
    }),
});

Deno.test("one core module of a component is explored", () => {
  inFolder((folder, waft) => {
    writeFileSync(
      join(folder, "c.wat"),
      `(component (core module (func $one (export "a"))) (core module (func $two (export "b"))))`,
    );
    const { status, stderr } = waft("explore", "c.wat");
    assert.equal(status, 2);
    assert.equal(stderr, "waft: The component has 2 core modules; choose one with --module 0 to 1\n");
    assert.equal(waft("explore", "c.wat", "--module", "1", "-o", "c.html").status, 0);
    assert.equal(pageIndex(readFileSync(join(folder, "c.html"), "utf8")).functions[0]?.[1], "$two");
    assert.equal(waft("explore", "c.wat", "--module", "2").status, 2);
    assert.equal(waft("explore", "c.wat", "--module", "x").status, 2);
  });
});

Deno.test("a file that cannot be explored leaves no page", () => {
  inFolder((folder, waft) => {
    writeFileSync(join(folder, "m.wat"), "(module (func (i32.const 1)))");
    assert.match(waft("explore", "m.wat").stderr, /^waft: m\.wat:1:\d+: type mismatch/);
    assert.match(waft("explore", "none.wasm").stderr, /^waft: none\.wasm: .*no such file/i);
    writeFileSync(join(folder, "ok.wat"), MODULE);
    assert.equal(waft("compile", "ok.wat", "-o", "ok.waft").status, 0);
    assert.match(waft("explore", "ok.waft").stderr, /^waft: An artifact has machine code alone/);
    assert.ok(!existsSync(join(folder, "m.html")) && !existsSync(join(folder, "ok.html")));
  });
});

Deno.test("calls of a function with a very long name do not make a page that is too large", () =>
  inFolder((folder, waft) => {
    writeFileSync(join(folder, "long.wasm"), longNameModule(5000));
    const { status, stderr } = waft("explore", "long.wasm", "-o", "long.html");
    assert.equal(status, 0, stderr.slice(0, 2000));
    assert.ok(readFileSync(join(folder, "long.html")).length < 20_000_000);
  }));
