/**
 * The documentation is true: every example holds, every link leads somewhere, every page is in the order.
 *
 * TypeScript examples run as documentation tests (`deno test --doc`); this file checks the others: manifests against
 * the v1 schema, catalogs against the catalog's rules, WAT by assembling it, command lines against the command tree.
 */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { fileURLToPath } from "node:url";
import { TERMINAL } from "../../registry/site/pages/home_page.ts";
import { Command } from "commander";
import { ARCHIVE_LIMITS, readArchive, writeArchive } from "../../project/packages/archive.ts";
import { openPackage } from "../../project/definitions/catalog.ts";
import { COMMANDS } from "../../project/commands/table.ts";
import { assemble } from "../../project/definitions/engine_inspector.ts";
import { readMachine } from "../../project/packages/machine.ts";
import { checkManifest } from "../../project/manifest/manifest.ts";
import { machinePaths } from "../../project/base/paths.ts";
import { checkArchive } from "../../registry/publish/check.ts";
import { HOST_FUNCTIONS } from "../../project/definitions/authorities.ts";
import { OUTPUT_SCHEMAS } from "../../project/output_schemas.ts";
import { abiPage, FUNCTION_WORDS } from "../../registry/site/abi_page.ts";
import { addCommand as addRegistry } from "../../registry/command.ts";
import { DOCS_TOC, GENERATED_PAGES, REFERENCE_PAGES } from "../../registry/docs_toc.ts";
import { allDocuments } from "./test_registry.ts";
import { DEFAULT_SETTINGS } from "../../registry/settings.ts";
import { DocumentSite } from "../../registry/site/documents.ts";
import { headlines } from "../../registry/site/performance_page.ts";
import { staticFile } from "../../registry/site/static_files.ts";

const encode = (text: string): Uint8Array => new TextEncoder().encode(text);
const PAGES = await allDocuments();
const SITE = new DocumentSite("https://waft.sh", new Map([["canary", PAGES]]));

interface Block {
  readonly page: string;
  readonly info: string;
  readonly text: string;
}

const BLOCKS: Block[] = PAGES.flatMap(({ path, source }) =>
  [...source.matchAll(/^```([^\n]*)\n([\s\S]*?)^```$/gm)].map((m) => ({ page: path, info: m[1], text: m[2] }))
);

Deno.test("the order names every page, and every page is in the order", () => {
  const listed = DOCS_TOC.flatMap((g) => g.pages);
  assert.equal(new Set(listed).size, listed.length);
  const pages = PAGES.map((p) => p.path.replace(/\.md$/, ""));
  assert.deepEqual([...listed].sort(), pages.filter((name) => !name.includes("/")).sort());
  for (const name of pages) assert.ok(listed.includes(name.split("/")[0]), name);
  for (const page of [...GENERATED_PAGES, ...REFERENCE_PAGES]) assert.ok(listed.includes(page));
});

Deno.test("the terminal output on the first page is that of waft", async () => {
  const folder = await mkdtemp(join(tmpdir(), "waft-docs-"));
  try {
    const gcd = BLOCKS.find((b) => b.page === "getting-started.md" && b.info === "wat")!;
    await writeFile(join(folder, "gcd.wat"), gcd.text);
    await writeFile(join(folder, "endless.wat"), '(module (func $spin (export "spin") (loop (br 0))))');
    const cli = fileURLToPath(new URL("../../cli.ts", import.meta.url));
    for (const { command, output } of TERMINAL.slice(0, 2)) {
      const args = ["run", "-A", "--no-check", cli, ...command.split(" ").slice(1)];
      const { stdout, stderr } = spawnSync(process.execPath, args, { cwd: folder, encoding: "utf8" });
      assert.equal((stdout + stderr).trimEnd(), output, command);
    }
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
});

Deno.test("the page of the plugin ABI has every function, with a name for each parameter", () => {
  assert.deepEqual(Object.keys(FUNCTION_WORDS).sort(), [...HOST_FUNCTIONS.keys()].sort());
  for (const [name, { type }] of HOST_FUNCTIONS) {
    const names = FUNCTION_WORDS[name][0].split(", ").filter((n) => n !== "");
    assert.equal(names.length, type.params.length, name);
  }
  assert.doesNotMatch(abiPage(), /undefined/);
});

Deno.test("every manifest in the documentation is a valid v1 manifest", async () => {
  const manifests = BLOCKS.filter((b) => b.info === "json waft.json");
  assert.ok(manifests.length >= 5, "there are manifests");
  for (const { page, text } of manifests) {
    const { diagnostics } = await checkManifest(encode(text), page);
    assert.deepEqual(diagnostics, []);
  }
  for (const { page, info, text } of BLOCKS) {
    if (!info.startsWith("json")) continue;
    assert.doesNotThrow(() => JSON.parse(text), `${page}: ${text.slice(0, 60)}`);
  }
});

Deno.test("every environment variable of waft is in the documentation", () => {
  const root = fileURLToPath(new URL("../../", import.meta.url));
  const named = new Set<string>();
  for (const folder of ["project", "registry", "engine", "component", "installer"]) {
    for (const path of readdirSync(join(root, folder), { recursive: true }).map(String)) {
      if (!/\.(?:ts|sh)$/.test(path) || path.endsWith("_test.ts")) continue;
      for (const [name] of readFileSync(join(root, folder, path), "utf8").matchAll(/\bWAFT_[A-Z_]+/g)) named.add(name);
    }
  }
  assert.ok(named.size > 12, [...named].join());
  const docs = readdirSync(join(root, "docs")).filter((name) => name.endsWith(".md"))
    .map((name) => readFileSync(join(root, "docs", name), "utf8")).join("\n");
  assert.deepEqual([...named].filter((name) => !docs.includes(`\`${name}`)).sort(), [
    "WAFT_BLESS", // Rewrites expected results of tests.
    "WAFT_SELF_TEST", // Set for the child process that checks a system on which waft has not been run.
  ]);
});

Deno.test("the files of a machine in the documentation are read as they stand there", async () => {
  const machines = BLOCKS.filter((b) => /^json (?:config|policy)\.json$/.test(b.info));
  assert.equal(machines.length, 3, "there are such files");
  const key = Buffer.alloc(32, 7).toString("base64");
  for (const { info, text } of machines) {
    const home = await mkdtemp(join(tmpdir(), "waft-machine-"));
    const paths = machinePaths({ env: { WAFT_HOME: home }, os: "linux", home });
    try {
      await mkdir(paths.config, { recursive: true });
      await writeFile(join(paths.config, info.slice("json ".length)), text.replace(/<the publicKey[^>]*>/, key));
      const machine = await readMachine(paths, { env: {} });
      // Something of each is in force.
      const isDefault = machine.policy.deny.length === 0 && machine.minReleaseAgeMs === 0 &&
        Object.keys(machine.keys).length === 0;
      assert.equal(isDefault, false, text);
    } finally {
      await rm(home, { recursive: true, force: true });
    }
  }
});

Deno.test("every module in the documentation assembles", () => {
  const modules = BLOCKS.filter((b) => b.info === "wat");
  assert.ok(modules.length >= 2, "there are modules");
  for (const { text } of modules) assert.ok(assemble(text).length > 8);
});

Deno.test("the plugin of the authoring page can be published as it stands there", async () => {
  const of = (info: string): string => BLOCKS.find((b) => b.page === "plugin-authoring.md" && b.info === info)!.text;
  const files = new Map([
    ["waft.json", encode(of("json waft.json"))],
    ["register/catalog.json", encode(of("json catalog"))],
    ["dist/dice.wasm", assemble(of("wat"))],
  ]);
  const archive = writeArchive(files);
  const result = await checkArchive(archive, {
    package: "github.com/acme/dice",
    version: "1.0.0",
    readmeBytes: 1000,
    readmeHtmlBytes: 1000,
  }, () => Promise.resolve(new Map()));
  assert.ok(result.ok, JSON.stringify(result));
  assert.equal((await openPackage(readArchive(archive), "1.0.0")).id, "github.com/acme/dice");
});

Deno.test("command lines name commands that exist", async () => {
  const program = new Command("waft").enablePositionalOptions();
  for (const row of COMMANDS) (await row.load()).addCommand(program);
  addRegistry(program);
  let seen = 0;
  for (const { page, info, text } of BLOCKS) {
    if (info !== "sh" || GENERATED_PAGES.includes(page.replace(/\.md$/, ""))) continue;
    for (const [, line] of text.matchAll(/^(?:[A-Z_]+=\S+ )*waft ([^#\n]+)/gm)) {
      // `waft +0.3.1 …` chooses a version for one call.
      const words = line!.trim().replace(/^\+\S+\s+/, "").split(/\s+/);
      let command = program.commands.find((c) => c.name() === words[0]);
      assert.ok(command !== undefined, `${page}: waft ${line}`);
      const standard = (command as unknown as { readonly _defaultCommandName?: string })._defaultCommandName;
      const wanted = standard !== undefined && (words[1] ?? "--").startsWith("--") ? standard : words[1];
      const inner = command.commands.find((c) => c.name() === wanted);
      if (command.commands.length > 0) assert.ok(inner !== undefined, `${page}: waft ${line}`);
      command = inner ?? command;
      const known = command.createHelp().visibleOptions(command).flatMap((o) => [o.long, o.short]);
      for (const word of words.filter((w) => w.startsWith("--"))) {
        assert.ok(known.includes(word.split("=")[0]), `${page}: ${word} in waft ${line}`);
      }
      seen++;
    }
  }
  assert.ok(seen >= 10, "there are command lines");
});

const REGISTRY_PAGE = PAGES.find((p) => p.path === "registry.md")!.source;

Deno.test("the figures of the load run are those that were kept", () => {
  const kept = JSON.parse(readFileSync(new URL("../../registry/load_figures.json", import.meta.url), "utf8")) as {
    readonly [name: string]: string | number;
  }[];
  const columns = ["store", "killed", "answersPerSecond", "p50", "p99", "installs", "releases", "status503"]
    .concat(["other5xx", "unanswered", "lostOrDoubled"]);
  assert.ok(kept.length >= 5);
  for (const row of kept) {
    const cells = columns.map((name) => row[name].toLocaleString("en"));
    const line = new RegExp(`^\\| ${cells.join(" +\\| +")} +\\|$`, "m");
    assert.match(REGISTRY_PAGE, line);
    assert.deepEqual([row.clients, row.seconds, row.lostOrDoubled, row.other5xx], [200, 60, 0, 0]);
  }
});

Deno.test("the figures of the README are those of the page about performance", () => {
  const readme = readFileSync(new URL("../../README.md", import.meta.url), "utf8").replace(/\s+/g, " ");
  const [runTime, fuel, reset] = headlines();
  assert.ok(
    readme.includes(
      `its code takes ${runTime.value} V8's run time, the mean of ${/\d+ programs/.exec(runTime.meaning)![0]}`,
    ),
  );
  assert.ok(readme.includes(`costs ${fuel.value} of the run time`));
  assert.ok(readme.includes(`in ${reset.value} the time that V8 takes to make one`));
});

Deno.test("the limits are those of the program", () => {
  const { rates, ...limits } = DEFAULT_SETTINGS;
  const table = [...REGISTRY_PAGE.matchAll(/^\| [a-z][^|]* \| +([0-9]+) \|$/gm)].map((m) => Number(m[1]));
  assert.deepEqual(table, [rates.read, rates.search, rates.installs, rates.write, rates.refused]);
  const text = REGISTRY_PAGE.replace(/\s+/g, " ");
  for (
    const words of [
      `at most ${limits.publishPerHour} releases per hour and ${limits.publishPerDay} per day`,
      `at most ${limits.archiveBytes >> 20} MiB packed and ${ARCHIVE_LIMITS.unpackedBytes >> 20} MiB unpacked`,
      `a README ${limits.readmeBytes >> 10} KiB and ${limits.readmeHtmlBytes >> 20} MiB of HTML, a JSON body ${
        limits.jsonBytes >> 10
      } KiB`,
      `within ${limits.bodyTimeoutMs / 1000} seconds`,
      `take ${limits.checkTimeoutMs / 1000} seconds and ${limits.checkMemoryMiB} MiB`,
      `the ${limits.checkQueue + 1}th is answered 503`,
    ]
  ) assert.ok(text.includes(words), words);
});

Deno.test("links of the Markdown files lead somewhere in a checkout, too", () => {
  const root = fileURLToPath(new URL("../../", import.meta.url));
  const files = ["README.md", "CONTRIBUTING.md", "ARCHITECTURE.md", "scripts/package/engine_readme.md"].concat(
    readdirSync(join(root, "docs")).filter((name) => name.endsWith(".md")).map((name) => `docs/${name}`),
  );
  let seen = 0;
  for (const file of files) {
    for (const [, target] of readFileSync(join(root, file), "utf8").matchAll(/\]\(([^)#\s]+)[^)\s]*\)/g)) {
      seen++;
      const page = /^https:\/\/waft\.sh\/([a-z0-9-]+)$/.exec(target!)?.[1];
      const isThere = page === undefined
        ? target!.startsWith("https://") || existsSync(join(root, file, "..", target!))
        : page === "playground" || PAGES.some((p) => p.path === `${page}.md`);
      assert.ok(isThere, `${file}: ${target}`);
    }
  }
  assert.ok(seen > 40, String(seen));
});

Deno.test("every link inside the documentation leads to a page and a heading", () => {
  const channel = SITE.channel("canary")!;
  for (const page of channel.pages) {
    for (const [, target] of page.html.matchAll(/<a href="([^"]*)"/g)) {
      if (target!.startsWith("https://")) continue;
      const schema = /^\/schemas\/v1\/output\/([a-z.]+)\.schema\.json$/.exec(target!)?.[1];
      if (schema !== undefined && Object.hasOwn(OUTPUT_SCHEMAS, schema)) continue;
      const [path, fragment] = target!.split("#") as [string, string | undefined];
      const there = path === "" ? page : SITE.page(path);
      assert.ok(there !== undefined, `${page.name}: ${target}`);
      if (fragment !== undefined) assert.ok(there.headings.some((h) => h.id === fragment), `${page.name}: ${target}`);
    }
    assert.equal(page.headings.filter((h) => h.level === 1).length, 1, `${page.name} has one title`);
    const least = page.name.includes("/") ? 10 : 20;
    assert.ok(page.description.length > least, `${page.name} begins with a paragraph`);
  }
});

Deno.test("every picture of a page is a file of the site, with its size and a description", () => {
  let pictures = 0;
  for (const { path } of PAGES) {
    const html = SITE.page(`/${path.replace(/(^|\/)?index\.md$|\.md$/, "")}`)?.html ?? "";
    for (const [image] of html.matchAll(/<img [^>]*>/g)) {
      const [, address] = /src="([^"]*)"/.exec(image)!;
      assert.match(staticFile(address!)?.type ?? "", /^image\/(png|svg\+xml)$/, `${path}: ${image}`);
      assert.match(image, /width="[1-9]\d+" height="[1-9]\d+"/, path);
      assert.match(image, /alt="[^"]{40,}"/, path);
      pictures++;
    }
  }
  assert.equal(pictures, 5);
});
