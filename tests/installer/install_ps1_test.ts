/**
 * install.ps1, interpreted (powershell.ts) on a machine that records its actions: the order of checks and changes, the
 * release sites that are accepted, the PATH, arguments of programs, removal.
 */
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { windowsInstallerFor } from "../../scripts/package/release_site.ts";
import type { ReleaseEntry } from "../../project/versions/release_index.ts";
import { type CmdletCall, nodesOf, parseScript, runScript, ScriptError } from "./powershell.ts";

const SOURCE = readFileSync(new URL("../../installer/install.ps1", import.meta.url), "utf8");
const ARCHIVE = "an archive";
const DIGEST = createHash("sha256").update(ARCHIVE).digest("hex");
const RELEASE = {
  version: "1.2.3",
  entry: {
    commit: "c0ffee",
    artifacts: [{ platform: "windows/amd64", kind: "bundle", url: "x", size: 1, sha256: DIGEST }],
  } as unknown as ReleaseEntry,
  base: "https://waft.sh",
};
const SCRIPT = await parseScript(windowsInstallerFor(SOURCE, RELEASE));
const UNRELEASED = await parseScript(SOURCE);

const HOME = "C:\\Users\\R&D 100%";
const WORK = "C:\\temp\\waft-install-1";
const URL_OF_ARCHIVE = "https://waft.sh/releases/1.2.3/waft-1.2.3-windows-amd64.tar.gz";

/** The state of a machine before the script runs. */
interface Start {
  readonly environment?: Readonly<Record<string, string>>;
  /** The archive that the site serves. */
  readonly archive?: string;
  /** Exit statuses by program. */
  readonly fails?: RegExp;
  /** Values of `Path` in the registry. */
  readonly path?: string;
  /** Files by path; directories follow from them. */
  readonly files?: readonly string[];
  readonly answer?: string;
}

/** A machine with Windows on x64. Its actions are lines, in order. */
class FakeWindows {
  readonly actions: string[] = [];
  readonly messages: string[] = [];
  readonly environment: Map<string, string>;
  readonly #start: Start;
  path: string;
  files: string[];
  #downloaded = "";

  constructor(start: Start) {
    this.#start = start;
    this.path = start.path ?? "%USERPROFILE%\\bin;C:\\tools";
    this.files = [...start.files ?? []];
    const { environment } = start;
    this.environment = new Map(Object.entries({
      USERPROFILE: HOME,
      PROCESSOR_ARCHITECTURE: "AMD64",
      SYSTEMROOT: "C:\\Windows",
      PATH: "C:\\Windows",
      ...environment,
    }));
  }

  #exists(path: string): boolean {
    return path.endsWith("\\tar.exe") || this.files.some((file) => file === path || file.startsWith(`${path}\\`));
  }

  /** The entries of a directory. */
  #entries({ named, positional }: CmdletCall): { Name: string; FullName: string }[] {
    const path = String(named.get("literalpath") ?? positional[0]);
    const below = this.files.filter((file) => file.startsWith(`${path}\\`)).map((file) => file.slice(path.length + 1));
    const wanted = named.has("directory") ? below.filter((name) => name.includes("\\")) : below;
    const names = [...new Set(wanted.map((name) => name.split("\\")[0]))];
    return names.map((name) => ({ Name: name, FullName: `${path}\\${name}` }));
  }

  #remove(call: CmdletCall): readonly unknown[] {
    const path = String(call.named.get("literalpath") ?? call.positional[0]);
    if (call.named.get("recurse") !== true) assert.deepEqual(this.#entries(call), [], `${path} is not empty`);
    this.actions.push(`remove ${path}`);
    this.files = this.files.filter((file) => file !== path && !file.startsWith(`${path}\\`));
    return [];
  }

  readonly cmdlets: Readonly<Record<string, (call: CmdletCall) => readonly unknown[]>> = {
    "join-path": ({ positional: [a, b] }) => [`${String(a)}\\${String(b)}`],
    "test-path": ({ named, positional }) => [this.#exists(String(named.get("literalpath") ?? positional[0]))],
    "get-childitem": (call) => this.#entries(call),
    "remove-item": (call) => this.#remove(call),
    "out-null": () => [],
    "get-content": ({ positional }) => [JSON.stringify({ bin: `${String(positional[0]).split("\\state")[0]}\\bin` })],
    "convertfrom-json": ({ input }) => [JSON.parse(String(input[0]))],
    "read-host": () => [this.#start.answer ?? ""],
    "new-item": ({ named, positional }) => {
      assert.equal(named.get("itemtype"), "Directory");
      this.actions.push(`make ${String(positional[0])}`);
      return [];
    },
    "invoke-webrequest": ({ named }) => {
      this.actions.push(`download ${String(named.get("uri"))}`);
      this.#downloaded = this.#start.archive ?? ARCHIVE;
      return [];
    },
    "get-filehash": ({ named }) => {
      this.actions.push("hash");
      assert.equal(named.get("algorithm"), "SHA256");
      return [{ Hash: createHash("sha256").update(this.#downloaded).digest("hex").toUpperCase() }];
    },
    "get-item": ({ positional }) => {
      assert.equal(positional[0], "HKCU:\\Environment");
      return [{
        GetValue: (name: string, missing: string, option: string) => {
          assert.deepEqual([name, missing, option], ["Path", "", "DoNotExpandEnvironmentNames"]);
          return this.path;
        },
      }];
    },
    "set-itemproperty": ({ named }) => {
      assert.deepEqual(["path", "name", "type"].map((name) => named.get(name)), [
        "HKCU:\\Environment",
        "Path",
        "ExpandString",
      ]);
      this.path = String(named.get("value"));
      this.actions.push("change the PATH");
      return [];
    },
    "set-item": ({ named }) => {
      const name = /^Env:(\w+)$/.exec(String(named.get("path")))![1].toUpperCase();
      const value = named.get("value");
      if (value === null) this.environment.delete(name);
      else this.environment.set(name, String(value));
      return [];
    },
  };

  readonly statics: Readonly<Record<string, unknown>> = {
    "console::error": { WriteLine: (text: unknown) => this.messages.push(String(text)) },
    "io.path::gettemppath": () => "C:\\temp",
    "guid::newguid": () => ({ ToString: () => "1" }),
    "nullstring::value": null,
    "environment::getenvironmentvariable": (name: string) => this.environment.get(name.toUpperCase()) ?? null,
    "environment::setenvironmentvariable": (name: string, _value: unknown, target: string) =>
      assert.deepEqual([name, target], ["WAFT_PATH_CHANGED", "User"]),
  };

  readonly variables: Readonly<Record<string, unknown>> = {
    executioncontext: {
      SessionState: {
        Path: {
          GetUnresolvedProviderPathFromPSPath: (path: string) => /^[a-z]:\\/i.test(path) ? path : `C:\\here\\${path}`,
        },
      },
    },
  };

  readonly run = (program: string, args: readonly string[]): number => {
    const given = ["WAFT_CACHE", "WAFT_INSTALL_DIR", "WAFT_RELEASE_BASE"].filter((name) => this.environment.has(name))
      .map((name) => ` ${name}=${this.environment.get(name)}`);
    this.actions.push(`${program} ${args.join(" ")}${program.endsWith(".cmd") ? given.join("") : ""}`);
    return this.#start.fails?.test(program) === true ? 1 : 0;
  };
}

/** Runs the script; returns the machine, and the message if the script failed. */
function run(
  given: Readonly<Record<string, unknown>> = {},
  start: Start = {},
  script = SCRIPT,
): { machine: FakeWindows; error: string | undefined } {
  const machine = new FakeWindows(start);
  try {
    runScript(script, machine, given);
  } catch (error) {
    if (!(error instanceof ScriptError)) throw error;
    return { machine, error: error.message };
  }
  return { machine, error: undefined };
}

const UNPACK = `C:\\Windows\\System32\\tar.exe -xzf ${WORK}\\bundle.tar.gz -C ${WORK}`;
const SETUP = `${WORK}\\waft-1.2.3\\waft.cmd self install --sha256 ${DIGEST} --commit c0ffee --yes`;
const FETCH = [`make ${WORK}`, `download ${URL_OF_ARCHIVE}`, "hash"];

function surroundings(bin: string, base = "https://waft.sh"): string {
  return ` WAFT_CACHE=${WORK}\\cache WAFT_INSTALL_DIR=${bin} WAFT_RELEASE_BASE=${base}`;
}

Deno.test("install.ps1 checks the archive before it unpacks or runs anything, and cleans up", () => {
  const bin = `${HOME}\\.waft\\bin`;
  const { machine, error } = run();
  assert.equal(error, undefined);
  assert.deepEqual(machine.actions, [
    ...FETCH,
    UNPACK,
    SETUP + surroundings(bin),
    "change the PATH",
    `remove ${WORK}`,
  ]);
  assert.equal(machine.path, `%USERPROFILE%\\bin;C:\\tools;${bin}`, "references to variables stay");
  assert.equal(machine.environment.get("PATH"), `C:\\Windows;${bin}`);
  for (const name of ["WAFT_CACHE", "WAFT_INSTALL_DIR", "WAFT_RELEASE_BASE"]) {
    assert.equal(machine.environment.has(name), false, name);
  }
});

Deno.test("install.ps1 stops before the first change when a step fails", () => {
  const wrong = run({}, { archive: "another archive" });
  assert.match(wrong.error!, /does not match the release$/);
  assert.match(wrong.machine.messages.join("\n"), new RegExp(`expected ${DIGEST}; nothing was changed`));
  assert.deepEqual(wrong.machine.actions, [...FETCH, `remove ${WORK}`]);
  const packed = run({}, { fails: /tar/ });
  assert.match(packed.error!, /cannot be unpacked/);
  assert.deepEqual(packed.machine.actions, [...FETCH, UNPACK, `remove ${WORK}`]);
  const setup = run({}, { fails: /waft\.cmd/, environment: { WAFT_INSTALL_DIR: "C:\\own" } });
  assert.match(setup.error!, /nothing was activated/);
  assert.deepEqual(setup.machine.actions, [...FETCH, UNPACK, SETUP + surroundings("C:\\own"), `remove ${WORK}`]);
  assert.equal(setup.machine.environment.get("WAFT_INSTALL_DIR"), "C:\\own", "variables are as before");
});

Deno.test("install.ps1 downloads over TLS, or from this machine", () => {
  const sites: readonly (readonly [base: string, accepted: boolean])[] = [
    ["https://mirror.example/waft/", true],
    ["HTTPS://mirror.example", true],
    ["http://127.0.0.1:8000", true],
    ["http://localhost/x", true],
    ["http://[::1]:80", true],
    ["http://mirror.example", false],
    ["http://localhost.example", false],
    ["http://localhost:8000@mirror.example", false],
    ["http://localhost:x@mirror.example", false],
    ["http://127.0.0.1.example", false],
    ["ftp://mirror.example", false],
    ["https://", false],
    ["file:///C:/x", false],
    ["\\\\mirror\\share", false],
  ];
  for (const [base, accepted] of sites) {
    for (const isParameter of [true, false]) {
      const { machine, error } = isParameter ? run({ base }) : run({}, { environment: { WAFT_RELEASE_BASE: base } });
      const site = base.replace(/\/$/, "");
      if (accepted) assert.equal(machine.actions[1], `download ${URL_OF_ARCHIVE.replace("https://waft.sh", site)}`);
      else assert.deepEqual([machine.actions, /must use https/.test(error ?? "")], [[], true], base);
    }
  }
});

Deno.test("install.ps1 passes values of the user in variables, not through cmd's command lines", () => {
  const { machine } = run({ dir: "D:\\R&D %PATH% (x)\\bin", base: "https://m.example/%41&b", version: "v1.3.0-rc.1" });
  const [setup, version] = machine.actions.filter((action) => action.includes("waft.cmd"));
  assert.equal(setup, SETUP + surroundings("D:\\R&D %PATH% (x)\\bin", "https://m.example/%41&b"));
  assert.equal(
    version,
    "D:\\R&D %PATH% (x)\\bin\\waft.cmd version install v1.3.0-rc.1 --use WAFT_RELEASE_BASE=https://m.example/%41&b",
  );
  for (const name of ["1.2.3&calc", "a b", "%x%", '"', "../x"]) {
    const refused = run({ version: name });
    assert.match(refused.error!, /is not the name of a version/);
    assert.deepEqual(refused.machine.actions, []);
  }
  assert.equal(run({ version: "v1.2.3" }).machine.actions.some((action) => action.includes("version install")), false);
});

Deno.test("install.ps1 puts an absolute directory on the PATH, once, unless it is told not to", () => {
  assert.equal(run({ dir: "tools" }, { path: "" }).machine.path, "C:\\here\\tools");
  assert.deepEqual(run({ dir: "c:\\TOOLS" }).machine.path, "%USERPROFILE%\\bin;C:\\tools");
  for (const [given, environment] of [[{ nomodifypath: true }, {}], [{}, { WAFT_NO_MODIFY_PATH: "1" }]] as const) {
    const { machine } = run(given, { environment });
    assert.equal(machine.actions.includes("change the PATH"), false);
  }
  const dry = run({ dryrun: true }).machine;
  assert.deepEqual(dry.actions.slice(4), [
    `${SETUP} --dry-run${surroundings(`${HOME}\\.waft\\bin`)}`,
    `remove ${WORK}`,
  ]);
});

Deno.test("install.ps1 refuses other processors and copies outside of a release, and finds the system's tar", () => {
  const arm = run({}, { environment: { PROCESSOR_ARCHITECTURE: "ARM64" } });
  assert.deepEqual([arm.error, arm.machine.actions], ["waft has no build for Windows on ARM64", []]);
  const own = run({}, {}, UNRELEASED);
  assert.deepEqual([own.error, own.machine.actions], ["this copy of the script is not part of a release", []]);
  const emulated = { PROCESSOR_ARCHITECTURE: "x86", PROCESSOR_ARCHITEW6432: "AMD64" };
  assert.match(run({}, { environment: emulated }).machine.actions[3], /^C:\\Windows\\Sysnative\\tar\.exe /);
});

/** A machine with waft, a project's files among those of waft, and a PATH with its directory. */
const INSTALLED: Start = {
  environment: { WAFT_HOME: "C:\\waft" },
  path: "C:\\waft\\bin;%USERPROFILE%\\bin",
  answer: "yes",
  files: [
    "C:\\waft\\bin\\waft.cmd",
    "C:\\waft\\cache\\blobs\\a",
    "C:\\waft\\cache\\mine\\b",
    "C:\\waft\\config\\credentials.json",
    "C:\\waft\\state\\install-receipt.json",
    "C:\\waft\\state\\active.json",
    "C:\\waft\\versions\\1.2.3\\receipt.json",
    "C:\\waft\\versions\\.staging-0123456789ab\\x",
    "C:\\waft\\versions\\mine\\x",
  ],
};

Deno.test("install.ps1 -Uninstall removes waft's entries, the versions first, and nothing else", () => {
  const { machine } = run({ uninstall: true }, INSTALLED);
  assert.deepEqual(machine.actions.slice(0, 3), [
    "change the PATH",
    "remove C:\\waft\\versions\\1.2.3",
    "remove C:\\waft\\versions\\.staging-0123456789ab",
  ]);
  assert.equal(machine.path, "%USERPROFILE%\\bin");
  const mine = ["C:\\waft\\cache\\mine\\b", "C:\\waft\\versions\\mine\\x"];
  assert.deepEqual(machine.files.sort(), [mine[0], "C:\\waft\\config\\credentials.json", mine[1]]);
  assert.deepEqual(run({ uninstall: true, purge: true }, INSTALLED).machine.files, mine);
  for (const [given, start] of [[{ dryrun: true }, {}], [{}, { answer: "no" }], [{}, { answer: "" }]] as const) {
    const kept = run({ uninstall: true, ...given }, { ...INSTALLED, ...start }).machine;
    assert.deepEqual(kept.actions, []);
    assert.deepEqual(kept.files, INSTALLED.files);
  }
  assert.equal(run({ uninstall: true, yes: true }, { ...INSTALLED, answer: "no" }).machine.actions.length > 0, true);
  assert.equal(run({ uninstall: true }).error, "waft is not installed here");
});

Deno.test("install.ps1 never asks for higher rights, and calls no command outside of the list", () => {
  const functions = nodesOf(SCRIPT, "function_name").map(({ text }) => text.toLowerCase());
  const known = new Set([...functions, ...Object.keys(new FakeWindows({}).cmdlets), "where-object", "foreach-object"]);
  const commands = nodesOf(SCRIPT, "command_name").map(({ text }) => text.toLowerCase());
  assert.ok(commands.length > 50);
  assert.deepEqual(commands.filter((name) => !known.has(name)), []);
  const texts = ["verbatim_string_characters", "expandable_string_literal"].flatMap((type) => nodesOf(SCRIPT, type));
  for (const { text } of texts) assert.doesNotMatch(text, /HKLM|RunAs|^["']Machine["']$/i);
});
