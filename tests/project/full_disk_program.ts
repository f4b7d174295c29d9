/**
 * Operations that write files, on a disk that becomes full at every possible place. In: an empty tmpfs as the only
 * argument, which nothing else uses. Out: one line of JSON, the number of failures by scenario; a failed assertion ends
 * the process.
 *
 * Each scenario runs with 0, 1, 2, … free pages, and then with as many free inodes, until it succeeds. Invariants after
 * each failure: one clear error, every file old or new as a whole, no other file, and the same operation succeeds once
 * there is space.
 */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statfsSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { NewEngine } from "../../engine/mod.ts";
import { writeTogether } from "../../project/base/atomic_write.ts";
import { ProjectError } from "../../project/base/diagnostic.ts";
import { DISK } from "../../project/base/files.ts";
import { machinePaths } from "../../project/base/paths.ts";
import { replaceFile } from "../../project/base/replace_file.ts";
import { addPlugins } from "../../project/ops/project/add.ts";
import { writeApplication } from "../../project/ops/build/write_application.ts";
import { makeContext } from "../../project/packages/context.ts";
import { Credentials } from "../../project/packages/credentials.ts";
import { placeVersion, type Receipt } from "../../project/versions/version_store.ts";
import { writeBackup } from "../../registry/store/backup.ts";
import { StoreUnavailable } from "../../registry/store/database.ts";
import { migrate } from "../../registry/store/migrations.ts";
import { SqliteDatabase } from "../../registry/store/sqlite.ts";
import { FakeRegistry } from "./fake_registry.ts";
import { codecDefinition, KV, kvDefinition } from "./sample_plugins.ts";
import { ALLOW_ALL, REGISTRY } from "./temp_project.ts";

const PAGE = 4096;
const CLI = fileURLToPath(new URL("../../cli.ts", import.meta.url));
/** Largest number of free pages or inodes that a scenario needs. */
const MOST = 200;

interface Scenario {
  /** Creates the files before the operation. */
  setUp?(root: string): Promise<void> | void;
  /** The operation; throws if it fails. */
  run(root: string): Promise<void> | void;
  /** For operations that succeed without their files: whether they are written. */
  isComplete?(root: string): boolean;
  /** Files whose bytes differ from run to run, or that a library leaves behind; `run` checks their content. */
  readonly varying?: RegExp;
}

/** Replaces the content of files that vary between runs. */
const VARYING = "(varying)";

type Snapshot = ReadonlyMap<string, string>;

const mount = process.argv[2];
const root = join(mount, "work");
const fillers = join(mount, "fill");

/** The files below `root` with their contents. */
function snapshot(varying: RegExp | undefined): Snapshot {
  const files = new Map<string, string>();
  for (const name of (readdirSync(root, { recursive: true }) as string[]).sort()) {
    const path = join(root, name);
    if (statSync(path).isFile()) files.set(name, varying?.test(name) ? VARYING : readFileSync(path, "latin1"));
  }
  return files;
}

/** Leaves only `free` pages, or inodes. */
function fill(resource: Resource, free: number): void {
  mkdirSync(fillers);
  if (resource === "pages") {
    const { bavail } = statfsSync(mount);
    writeFileSync(join(fillers, "pages"), new Uint8Array((bavail - free) * PAGE));
    assert.equal(statfsSync(mount).bavail, free);
    return;
  }
  for (let left = statfsSync(mount).ffree - free; left > 0; left--) writeFileSync(join(fillers, `${left}`), "");
  assert.equal(statfsSync(mount).ffree, free);
}

const RESOURCES = ["pages", "inodes"] as const;
type Resource = (typeof RESOURCES)[number];

function isClear(error: unknown): boolean {
  if (error instanceof StoreUnavailable) return /disk|full|I\/O|unable to open/.test(error.message);
  if (error instanceof ProjectError) return /no space left on the d/.test(error.message);
  return (error as { code?: unknown }).code === "ENOSPC" || error instanceof CommandFailure;
}

/** A command that failed as it should: with status 1 and one line about the disk. */
class CommandFailure extends Error {}

/** Runs `waft` in `root`. */
function waft(...args: string[]): string {
  const { status, stdout, stderr } = spawnSync(process.execPath, ["run", "-A", "--no-check", CLI, ...args], {
    cwd: root,
    encoding: "utf8",
    env: { ...process.env, NO_COLOR: "1", WAFT_HOME: join(root, "home") },
  });
  if (status === 0) return stdout;
  assert.match(stderr, /^waft: [^\n]*no space left on the device\n$/, `${args.join(" ")}: status ${status}`);
  assert.equal(status, 1);
  throw new CommandFailure(stderr);
}

/** Runs a scenario with ever more of a resource; returns the number of failures. */
async function sweep(name: string, scenario: Scenario, resource: Resource): Promise<number> {
  const { setUp, run, isComplete, varying } = scenario;
  const states: { label: string; before: Snapshot; after: Snapshot }[] = [];
  for (let free = 0; free <= MOST; free++) {
    const label = `${name}, ${free} free ${resource}`;
    rmSync(root, { recursive: true, force: true });
    mkdirSync(root);
    await setUp?.(root);
    const before = snapshot(varying);
    fill(resource, free);
    let error: unknown;
    try {
      await run(root);
    } catch (thrown) {
      error = thrown;
    } finally {
      rmSync(fillers, { recursive: true });
    }
    if (error !== undefined) assert(isClear(error), `${label}: ${(error as Error).stack}`);
    const after = snapshot(varying);
    const done = error === undefined && (isComplete?.(root) ?? true);
    if (!done) {
      states.push({ label, before, after });
      await run(root); // now there is space
    }
    const final = snapshot(varying);
    for (const state of states) requireWhole(state, final);
    if (done) return states.length;
  }
  throw new Error(`${name} does not succeed with ${MOST} ${resource}`);
}

/** Every file has its old content or its final one. */
function requireWhole(
  { label, before, after }: { label: string; before: Snapshot; after: Snapshot },
  final: Snapshot,
): void {
  for (const path of before.keys()) assert(after.has(path), `${label}: ${path} is lost`);
  for (const [path, content] of after) {
    if (content === VARYING && path !== "backup.sqlite") continue;
    assert(before.has(path) || final.has(path), `${label}: ${path} is left over`);
    assert(content === before.get(path) || content === final.get(path), `${label}: ${path} is half-written`);
  }
}

// ---- scenarios ------------------------------------------------------------------------------------------------------

const LARGE = new Uint8Array(3 * PAGE + 17).map((_, i) => i * 7);
const OLD = "old content\n";
const MODULE = `(module (memory 1) (data (i32.const 0) "${"abcdefgh".repeat(1500)}")
  (func (export "main") (result i32) (i32.load8_u (i32.const 1))))`;
const BINARY = NewEngine().parse(new TextEncoder().encode(MODULE)).bytes;
const NEW_MANIFEST = new TextEncoder().encode('{\n  "plugins": {}\n}\n');

const fake = new FakeRegistry();
await fake.publish([codecDefinition()]);
await fake.publish([kvDefinition()]);

const put = (name: string, content: string | Uint8Array) => writeFileSync(join(root, name), content);
const paths = () => machinePaths({ env: { WAFT_HOME: join(root, "home") }, os: "linux", home: root });
const RECEIPT: Receipt = {
  schemaVersion: 1,
  version: "1.2.3",
  kind: "source",
  platform: "linux/amd64",
  commit: "",
  sha256: "",
  installedAt: "2026-01-01T00:00:00Z",
};

async function place(text: Uint8Array): Promise<void> {
  const files = new Map([["bin/waft", text], ["LICENSE", new Uint8Array(10)]]);
  await placeVersion(paths(), RECEIPT, { files, executables: new Set(["bin/waft"]) }, async () => {});
}

const openDatabase = () => new SqliteDatabase(join(root, "registry.sqlite"));

/** A database with the registry's tables, one archive and one account. */
async function setUpRegistry(): Promise<void> {
  const database = openDatabase();
  await migrate(database);
  await addRows(database);
  await database.close();
}

/** One archive and one account, in one transaction. */
function addRows(database: SqliteDatabase): Promise<void> {
  return database.write(async (queries) => {
    const name = crypto.randomUUID();
    await queries.run("INSERT INTO blobs (digest, size, bytes) VALUES (?, ?, ?)", name, LARGE.length, LARGE);
    await queries.run("INSERT INTO accounts (id, name, created_at) VALUES (?, ?, 0)", name, name);
  });
}

/** Two changes at the same time, over one connection: rows are in both tables or in none. */
async function changeTwice(): Promise<void> {
  const database = openDatabase();
  try {
    const before = await rowCounts(database);
    const ends = await Promise.allSettled([addRows(database), addRows(database)]);
    const done = ends.filter(({ status }) => status === "fulfilled").length;
    assert.deepEqual(
      await rowCounts(database),
      before.map((n) => n + done),
      "a change is lost, or half of one is there",
    );
    const [state] = await database.all("PRAGMA integrity_check");
    assert.equal(state.integrity_check, "ok");
    for (const end of ends) if (end.status === "rejected") throw end.reason;
  } finally {
    await database.close();
  }
}

async function rowCounts(database: SqliteDatabase): Promise<number[]> {
  const [row] = await database.all("SELECT (SELECT count(*) FROM blobs) AS b, (SELECT count(*) FROM accounts) AS a");
  return [Number(row.b), Number(row.a)];
}

async function backUp(): Promise<void> {
  const database = openDatabase();
  try {
    await writeBackup(database, join(root, "backup.sqlite"));
  } finally {
    await database.close();
  }
}

const SCENARIOS: { readonly [name: string]: Scenario } = {
  "manifest and lockfile": {
    setUp: () => {
      put("waft.json", OLD);
      put("waft-lock.json", OLD);
    },
    run: () =>
      writeTogether(root, [{ name: "waft.json", bytes: NEW_MANIFEST }, { name: "waft-lock.json", bytes: LARGE }]),
  },
  "waft add": {
    setUp: () => put("waft.json", NEW_MANIFEST),
    run: async () => {
      const context = await makeContext({
        registry: REGISTRY,
        env: {},
        paths: paths(),
        fetch: fake.fetch,
        engines: { waft: "0.3.0" },
      });
      await addPlugins(context, { root, directory: root, specs: [KV], decider: ALLOW_ALL });
    },
  },
  "credentials": {
    setUp: async () => await new Credentials(paths(), DISK).keep("https://a.example", "old_token_0123456789"),
    run: async () => await new Credentials(paths(), DISK).keep("https://b.example", "new_token_0123456789"),
  },
  "output of a command": {
    setUp: () => put("out", OLD),
    run: () => replaceFile(join(root, "out"), LARGE),
  },
  "executable with a program": {
    setUp: () => {
      put("runtime", LARGE);
      put("app", OLD);
    },
    run: () => writeApplication(join(root, "app"), join(root, "runtime"), { inputs: {} as never, program: LARGE }),
  },
  "installed version": {
    setUp: () => place(new TextEncoder().encode(OLD)),
    run: () => place(LARGE),
  },
  "code cache": {
    run: () => {
      const engine = NewEngine({ tier: "optimizing", cache: { directory: join(root, "cache") } });
      assert.equal(engine.compile(BINARY).instantiate().call({}, "main"), 98);
    },
    isComplete: () =>
      existsSync(join(root, "cache")) && readdirSync(join(root, "cache")).some((name) => name.endsWith(".waftbin")),
  },
  "registry": { setUp: setUpRegistry, run: changeTwice, varying: /^registry\.sqlite/ },
  "registry backup": { setUp: setUpRegistry, run: backUp, varying: /^registry\.sqlite|^backup\.sqlite$/ },
  "waft parse": {
    setUp: () => {
      put("m.wat", MODULE);
      put("m.wasm", OLD);
    },
    run: () => void waft("parse", "m.wat", "-o", "m.wasm"),
  },
  "waft print": {
    setUp: () => {
      put("m.wasm", BINARY);
      put("m.wat", OLD);
    },
    run: () => void waft("print", "m.wasm", "-o", "m.wat"),
  },
  "waft compile": {
    setUp: () => {
      put("m.wat", MODULE);
      put("m.waftbin", OLD);
    },
    run: () => void waft("compile", "m.wat", "-o", "m.waftbin"),
  },
};

const only = process.argv.slice(3);
const counts: Record<string, number> = {};
for (const [name, scenario] of Object.entries(SCENARIOS)) {
  if (only.length > 0 && !only.includes(name)) continue;
  for (const resource of RESOURCES) counts[`${name}, ${resource}`] = await sweep(name, scenario, resource);
}
console.log(JSON.stringify(counts));
process.exit(0);
