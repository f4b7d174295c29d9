/**
 * Compares Extism's own test modules on the engine with Extism's JavaScript SDK on V8:
 * `deno task compare:extism [--only TEXT] [--modules FOLDER]`. In: the modules of the SDK's repository, at a pinned
 * commit and with pinned contents, which come from GitHub into .cache/compare-extism, and the SDK from npm. Out: a line
 * for each call; status 1 for a difference that {@linkcode KNOWN} does not list, and for one that it lists and that no
 * longer occurs.
 */
import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import process from "node:process";
import { fileURLToPath, pathToFileURL } from "node:url";
import { createPlugin } from "../engine/extism/mod.ts";
import { installPackages } from "../tests/support/test_packages.ts";
import { readTaskLine } from "./task_options.ts";

const task = {
  name: "task compare:extism",
  about: "Compares the results of Extism's test modules on waft with those of Extism's JavaScript SDK on V8.",
  options: {
    only: { value: "TEXT", help: "only modules whose name contains TEXT", default: "" },
    modules: { value: "FOLDER", help: "a folder with the modules, in place of GitHub", default: "" },
    install: { help: "only install the SDK and the modules" },
  },
} as const;
const { values } = readTaskLine(task);

const COMMIT = "bec25c60d0ad32ce06d3934563fd8560f486f323";
const CACHE = fileURLToPath(new URL("../.cache/compare-extism/", import.meta.url));
const PACKAGES = fileURLToPath(new URL("../tests/webassembly/packages/", import.meta.url));

/** What both SDKs have. */
interface Plugin {
  call(name: string, input?: string): Promise<{ text(): string } | null>;
  reset(): unknown;
  close(): unknown;
}

type Create = (manifest: object, options: object) => Promise<Plugin>;

interface Context {
  read(at: bigint): { text(): string } | null;
  store(text: string): bigint;
}

/** A module, the functions that are called, and the options of its plugin. */
interface Row {
  readonly file: string;
  /** The name of its contents in Git. */
  readonly blob: string;
  /** Functions and their inputs; `reset` is the SDK's method. */
  readonly calls: readonly (readonly [name: string, input: string])[];
  readonly options?: object;
  readonly memory?: object;
  /** The SDK can run it in a Worker alone: its host functions wait. */
  readonly inWorker?: true;
}

const echo = (context: Context, at: bigint) => context.store(context.read(at)?.text() ?? "");
const user = (functions: object) => ({ functions: { "extism:host/user": functions } });
const wasi = { useWasi: true };

/** The address of the server that answers requests of plugins. */
const SERVER = "@server";

/**
 * The SDK's last version on npm lacks functions that log.wasm and http_headers.wasm import, and bounds blocks alone by
 * `maxPages`, where the engine bounds all memories, as Extism's own runtime does.
 */
const ROWS: readonly Row[] = [
  {
    file: "alloc.wasm",
    blob: "13d029d960d0885520a550e9b5cc5cdecd359bea",
    calls: [["run_test", ""], ["run_test", "again"]],
  },
  {
    file: "code.wasm",
    blob: "5bceea00223b43f2fcdde80947779db6859b3fc2",
    calls: [["count_vowels", "hello world"], ["reset", ""], ["count_vowels", "aeiou ".repeat(5000)], ["absent", "x"]],
  },
  {
    file: "code-functions.wasm",
    blob: "d13506def5f33e9a6ce19a769972132147b24532",
    calls: [["count_vowels", "hello world"], ["count_vowels", "again"]],
    options: { ...wasi, ...user({ hello_world: (_: Context, at: bigint) => at }) },
  },
  {
    file: "config.wasm",
    blob: "00f4551e1240421479f90ede28b376632af5e268",
    calls: [["run_test", ""]],
    options: { ...wasi, config: { thing: "testing" } },
  },
  {
    file: "consume.wasm",
    blob: "a9c1d1909f7229e617978b70015f63cf6a52c77d",
    calls: [["consume", "some input"]],
  },
  {
    file: "fail.wasm",
    blob: "63d98f58fd6b199fc99069e78a95fbcfb8d38e8d",
    calls: [["run_test", ""], ["run_test", "again"]],
  },
  {
    file: "hello.wasm",
    blob: "420480daf03543338a6866dc3ab27a751123e52c",
    calls: [["run_test", ""]],
  },
  {
    file: "hello_haskell.wasm",
    blob: "10eaf08cf896050097f8cc025418621f0842549d",
    calls: [["testing", "John"], ["testing", "Ben"]],
    options: { ...wasi, config: { greeting: "Howdy" } },
  },
  {
    file: "http.wasm",
    blob: "6886a1afa126e4ef774245b6266724f43e7d92d4",
    calls: [["http_get", JSON.stringify({ url: `${SERVER}/one` })], [
      "http_get",
      JSON.stringify({ url: "http://other.test/" }),
    ]],
    options: { ...wasi, allowedHosts: ["127.0.0.1"] },
    inWorker: true,
  },
  {
    file: "input_offset.wasm",
    blob: "163adce509d225ba6de9e1d80ba0563d0a256e66",
    calls: [["input_offset_length", "hello world"], ["input_offset_length", "x".repeat(1000)]],
  },
  {
    file: "memory.wasm",
    blob: "2764b8e4fd61ca2a91676d24900bc55c2428eead",
    calls: [
      ["alloc_memory", JSON.stringify({ bytes: 65536 })],
      ["alloc_memory", JSON.stringify({ bytes: 65536 * 20 })],
      ["alloc_var", JSON.stringify({ bytes: 100 })],
      ["alloc_var", JSON.stringify({ bytes: 1024 })],
    ],
    options: wasi,
    memory: { maxVarBytes: 512 },
  },
  {
    file: "reflect.wasm",
    blob: "d835f00e466d09aa6a6ae251663ea3f3fe90390a",
    calls: [["reflect", "Hello, world!"], ["reflect", "Größe \u{1F600}".repeat(1000)]],
    options: { ...wasi, ...user({ host_reflect: echo }) },
  },
  {
    file: "var.wasm",
    blob: "3e1aca75ab417a761eee4b65e43a4803b3b22bd9",
    calls: [["run_test", ""], ["run_test", ""]],
    options: wasi,
  },
  {
    file: "wasistdout.wasm",
    blob: "5703ca2bcccef528bba7aafe51c043ca9b6f179f",
    calls: [["say_hello", ""]],
    options: wasi,
  },
];

const EMPTY = "an empty block is an output in the SDK, and none in Extism's own kernel";

/** Known differences, by module, number of the call from 1, and function. */
const KNOWN: Readonly<Record<string, string>> = {
  "consume.wasm 1 consume": EMPTY,
  "memory.wasm 1 alloc_memory": EMPTY,
  "memory.wasm 2 alloc_memory": EMPTY,
  "memory.wasm 3 alloc_var": EMPTY,
  "memory.wasm 4 alloc_var": "the SDK's last version on npm does not enforce maxVarBytes, its next one does",
};

const counts = { equal: 0, known: 0, failed: 0 };

/** The contents of a module. Throws an Error for others than the pinned ones. */
async function moduleOf({ file, blob }: Row): Promise<Uint8Array> {
  const folder = values.modules === "" ? CACHE : values.modules;
  const path = join(folder, file);
  if (values.modules === "" && !existsSync(path)) {
    mkdirSync(CACHE, { recursive: true });
    const answer = await fetch(`https://raw.githubusercontent.com/extism/js-sdk/${COMMIT}/wasm/${file}`);
    if (!answer.ok) throw new Error(`${file}: GitHub answers with status ${answer.status}`);
    writeFileSync(path, new Uint8Array(await answer.arrayBuffer()));
  }
  const bytes = new Uint8Array(readFileSync(path));
  const digest = createHash("sha1").update(`blob ${bytes.length}\0`).update(bytes).digest("hex");
  if (digest !== blob) throw new Error(`${path} has other contents than at commit ${COMMIT}: ${digest}`);
  return bytes;
}

/** The outcome of a call in words that both SDKs share: texts of errors differ. */
async function outcome(plugin: Plugin, name: string, input: string): Promise<string> {
  if (name === "reset") {
    await plugin.reset();
    return "reset";
  }
  try {
    const output = await plugin.call(name, input);
    return output === null ? "no output" : `output ${output.text()}`;
  } catch {
    return "error";
  }
}

function report(name: string, sdk: string, own: string): void {
  const known = KNOWN[name];
  const kind = sdk === own ? known === undefined ? "equal" : "failed" : known === undefined ? "failed" : "known";
  counts[kind]++;
  const text = kind === "equal" ? own.slice(0, 60) : kind === "known" ? known : `the SDK: ${sdk.slice(0, 300)}`;
  console.log(`${kind === "failed" ? "FAILED" : "ok    "} ${name}: ${text}`);
  if (kind === "failed") {
    console.log(sdk === own ? "        equal now: remove it from KNOWN" : `        waft: ${own.slice(0, 300)}`);
  }
}

async function compare(row: Row, theirs: Create, server: string): Promise<void> {
  const manifest = {
    wasm: [{ data: await moduleOf(row) }],
    ...(row.memory === undefined ? {} : { memory: row.memory }),
  };
  const sdk = await theirs(manifest, { ...row.options, ...(row.inWorker ? { runInWorker: true } : {}) });
  const own = await (createPlugin as Create)(manifest, row.options ?? {});
  let k = 0;
  for (const [name, input] of row.calls) {
    const given = input.replaceAll(SERVER, server);
    report(`${row.file} ${++k} ${name}`, await outcome(sdk, name, given), await outcome(own, name, given));
  }
  await sdk.close();
  await own.close();
}

const sdkFolder = installPackages(PACKAGES);
const rows = ROWS.filter(({ file }) => file.includes(values.only));
for (const row of rows) await moduleOf(row);
if (values.install) process.exit(0);
const { createPlugin: theirs } = await import(
  pathToFileURL(join(sdkFolder, "node_modules/@extism/extism/dist/esm/mod.js")).href
) as { createPlugin: Create };
const server = createServer((request, response) => {
  response.end(`${request.method} ${request.url}`);
});
await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
const address = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
for (const row of rows) await compare(row, theirs, address);
server.close();
console.log(`${counts.equal} equal, ${counts.known} known differences, ${counts.failed} failed`);
process.exit(counts.failed === 0 ? 0 : 1);
