/**
 * The parts of a release, each on small inputs: the pinned Deno, packages for JSR, programs of `deno compile`, files
 * kept from old releases. end_to_end_test.ts and all_platforms_test.ts build whole releases.
 */
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { writeArchive } from "../../project/packages/archive.ts";
import type { ReleaseEntry } from "../../project/versions/release_index.ts";
import { VERSION } from "../../project/base/version_string.ts";
import { compileStandalone } from "../../scripts/package/compile.ts";
import { buildJsr } from "../../scripts/package/jsr_package.ts";
import { fetchDeno, type Pack, PINNED_DENO, type PinnedDeno, pinnedDeno } from "../../scripts/package/pinned_deno.ts";
import { versionFor } from "../../scripts/package/release.ts";
import { OWN_NAMES } from "../../project/ops/versions/self_install.ts";
import { bundleFiles } from "../../project/ops/versions/version.ts";
import { bundleModules, placeUrls } from "../../scripts/package/release_bundle.ts";
import { releaseManifests, releaseNotes } from "../../scripts/package/release_manifests.ts";
import { keptReleases, windowsInstallerFor } from "../../scripts/package/release_site.ts";

const utf8 = (text: string): Uint8Array => new TextEncoder().encode(text);

async function inFolder(work: (folder: string) => void | Promise<void>): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), "waft-release-test-"));
  try {
    await work(folder);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

function writeTree(root: string, files: Record<string, string>): void {
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(dirname(join(root, path)), { recursive: true });
    writeFileSync(join(root, path), text);
  }
}

Deno.test("pinned Deno: fetched once, kept, and always that of the table", () =>
  inFolder((cache) => {
    const archive = writeArchive(new Map([["package/deno", utf8("a program")], ["package/README.md", utf8("words")]]));
    const row: PinnedDeno = {
      ...pinnedDeno("linux/amd64"),
      integrity: `sha512-${createHash("sha512").update(archive).digest("base64")}`,
    };
    const asked: string[] = [];
    const pack = (bytes: Uint8Array): Pack => (specifier, folder) => {
      asked.push(specifier);
      writeFileSync(join(folder, "it.tgz"), bytes);
    };
    const program = (): string => new TextDecoder().decode(fetchDeno(row, cache, pack(archive)));
    assert.equal(program(), "a program");
    assert.equal(program(), "a program");
    assert.deepEqual(asked, [`${row.package}@${row.version}`]);
    const kept = join(cache, readdirSync(cache)[0]);
    writeFileSync(kept, readFileSync(kept).subarray(0, 50));
    assert.equal(program(), "a program");
    assert.equal(asked.length, 2, "a truncated cached file is fetched again");
    rmSync(kept);
    const other = writeArchive(new Map([["package/deno", utf8("another program")]]));
    assert.throws(
      () => fetchDeno(row, cache, pack(other)),
      /@2\..* has the digest sha512-.*, but the digest here is sha512-/,
    );
    assert.throws(() => fetchDeno(row, cache, () => {}), /npm wrote no archive to /);
    assert.throws(() =>
      fetchDeno(row, cache, () => {
        throw new Error("no network");
      }), /no network/);
    assert.deepEqual(readdirSync(cache), [], "nothing of a failed download is kept");
    const empty = writeArchive(new Map([["package/README.md", utf8("words")]]));
    const integrity = `sha512-${createHash("sha512").update(empty).digest("base64")}`;
    assert.throws(() => fetchDeno({ ...row, integrity }, cache, pack(empty)), /contains no file "deno"/);
  }));

Deno.test("pinned Deno: every platform has its row, every row a digest of SHA-512", () => {
  assert.deepEqual(PINNED_DENO.map((row) => row.platform), [
    "linux/amd64",
    "linux/arm64",
    "darwin/amd64",
    "darwin/arm64",
    "windows/amd64",
  ]);
  for (const { integrity, version, target } of PINNED_DENO) {
    assert.match(integrity, /^sha512-[A-Za-z0-9+/]{86}==$/);
    assert.match(version, /^2\.(?:9|[1-9][0-9])\.[0-9]+$/);
    assert.match(target, /^(?:x86_64|aarch64)-(?:unknown-linux-gnu|apple-darwin|pc-windows-msvc)$/);
  }
  assert.equal(new Set(PINNED_DENO.map((row) => row.integrity)).size, PINNED_DENO.length);
  assert.throws(() => pinnedDeno("linux/riscv64"), /no bundle for linux\/riscv64; platforms: linux\/amd64, /);
});

Deno.test("packages for JSR: the files that deno publish would send, the same bytes each time", () =>
  inFolder(async (folder) => {
    const files = {
      "deno.json": JSON.stringify({
        name: "@waft/cli",
        version: "1.2.3",
        license: "Apache-2.0",
        exports: "./cli.ts",
        workspace: ["./engine", "./component"],
        publish: { exclude: ["**/*_test.ts"] },
      }),
      "cli.ts":
        'import { answer } from "@waft/engine";\n/** The answer. */\nexport const twice: number = 2 * answer;\n',
      "cli_test.ts": "throw new Error();\n",
      "engine/deno.json": JSON.stringify({
        name: "@waft/engine",
        version: "1.2.3",
        license: "Apache-2.0",
        exports: "./mod.ts",
      }),
      "engine/mod.ts": "/** The answer. */\nexport const answer: number = 42;\n",
      "component/deno.json": JSON.stringify({
        name: "@waft/component",
        version: "1.2.3",
        license: "Apache-2.0",
        exports: "./mod.ts",
      }),
      "component/mod.ts": 'export { answer } from "@waft/engine";\n',
    };
    writeTree(join(folder, "a"), files);
    writeTree(join(folder, "b"), files);
    const built = await buildJsr(join(folder, "a"));
    const [engine, component, cli] = built;
    assert.deepEqual(built.map(({ name, version }) => `${name} ${version}`), [
      "@waft/engine 1.2.3",
      "@waft/component 1.2.3",
      "@waft/cli 1.2.3",
    ]);
    assert.match(new TextDecoder().decode(component!.files.get("mod.ts")), /from "jsr:@waft\/engine@\^?1\.2\.3"/);
    assert.deepEqual([...engine!.files.keys()].sort(), ["deno.json", "mod.ts"]);
    assert.deepEqual([...cli!.files.keys()].sort(), ["cli.ts", "deno.json"], "no test, no other package");
    assert.match(new TextDecoder().decode(cli!.files.get("cli.ts")), /from "jsr:@waft\/engine@\^?1\.2\.3"/);
    assert.deepEqual((await buildJsr(join(folder, "b"))).map((p) => p.archive), built.map((p) => p.archive));
    writeFileSync(join(folder, "b", "engine", "mod.ts"), 'export * from "./not_there.ts";\n');
    await assert.rejects(buildJsr(join(folder, "b")), /deno publish failed in .*engine:\n[\s\S]*not_there/);
  }));

/** Replaces Deno's runtime binary: `deno compile` embeds in any program of the platform's format. */
const ELF = "/bin/true";

Deno.test({
  name: "standalone: the same files and the same runtime binary give the same bytes, else the reason is said",
  ignore: Deno.build.os !== "linux" || !existsSync(ELF),
  fn: () =>
    inFolder((folder) => {
      const target = pinnedDeno(Deno.build.arch === "aarch64" ? "linux/arm64" : "linux/amd64").target;
      const files = new Map([
        ["waft", utf8("not embedded")],
        ["lib/waft.js", utf8('import "./part.js"; console.log(Deno.args);\n')],
        ["lib/part.js", utf8("globalThis.part = 1;\n")],
        ["lib/docs/words.md", utf8("# Embedded words\n")],
      ]);
      const denort = join(folder, "denort");
      mkdirSync(denort);
      copyFileSync(ELF, join(denort, `denort-${target}`));
      const compile = (out: string): Uint8Array => {
        assert.equal(compileStandalone({ files, out, target, denort }), undefined);
        return readFileSync(out);
      };
      const first = compile(join(folder, "new", "waft"));
      assert.ok(Buffer.from(first).includes("# Embedded words"));
      assert.ok(!Buffer.from(first).includes("not embedded"));
      assert.deepEqual(compile(join(folder, "another name")), first);
      files.set("lib/part.js", utf8("globalThis.part = 2;\n"));
      assert.notDeepEqual(compile(join(folder, "third")), first);
      files.set("lib/waft.js", utf8("this is not a program"));
      assert.throws(() => compile(join(folder, "fourth")), /deno compile failed/);
    }),
});

Deno.test("old releases that stay: official ones, those that channels name, the newest of each other channel", () => {
  const entry = {} as ReleaseEntry;
  const names = ["0.1.0", "0.2.0-canary.1", "0.2.0-canary.2", "0.2.0-canary.10", "0.2.0-nightly.1", "0.2.0-nightly.2"];
  const releases = Object.fromEntries(names.map((name) => [name, entry]));
  assert.deepEqual(Object.keys(keptReleases(releases, {}, 2)), names.filter((name) => name !== "0.2.0-canary.1"));
  assert.deepEqual(Object.keys(keptReleases(releases, { nightly: "0.2.0-nightly.1" }, 1)), [
    "0.1.0",
    "0.2.0-canary.10",
    "0.2.0-nightly.1",
    "0.2.0-nightly.2",
  ]);
});

Deno.test("a release's install.ps1 has its version and the digests of its bundles", () => {
  const script = readFileSync(new URL("../../installer/install.ps1", import.meta.url), "utf8");
  const artifact = { platform: "windows/amd64", kind: "bundle", url: "x", size: 1, sha256: "ab".repeat(32) };
  const entry = { commit: "c0ffee", artifacts: [artifact] } as unknown as ReleaseEntry;
  const text = windowsInstallerFor(script, { version: "1.2.3", entry, base: "https://example.com" });
  assert.match(text, /^\$RELEASE_VERSION = '1\.2\.3'$/m);
  assert.match(text, /^\$RELEASE_COMMIT = 'c0ffee'$/m);
  assert.match(text, /^\$RELEASE_BASE = 'https:\/\/example\.com'$/m);
  assert.match(text, new RegExp(`^\\$RELEASE_BUNDLES = 'windows/amd64 ${"ab".repeat(32)}'$`, "m"));
  assert.throws(() => windowsInstallerFor(script, { version: "'", entry, base: "" }), /contains a single quote/);
  assert.throws(() => windowsInstallerFor("", { version: "1", entry, base: "" }), /has no line \$RELEASE_VERSION/);
});

Deno.test("install.ps1 removes the entries that `waft self uninstall` removes, by the same names, and no whole directory", () => {
  const script = readFileSync(new URL("../../installer/install.ps1", import.meta.url), "utf8");
  for (const [directory, names] of Object.entries(OWN_NAMES)) {
    assert.ok(script.includes(`  ${directory} = '${names.source}'\n`), directory);
  }
  const [, removal = ""] = /^function Remove-Waft \{\n(.*?)^\}/ms.exec(script) ?? [];
  const recursive = removal.split("\n").filter((line) => line.includes("-Recurse"));
  assert.equal(recursive.length, 1);
  assert.doesNotMatch(removal.split("$directories")[0], /Join-Path \$root/);
  for (const source of ["Get-OwnVersions $root", "Get-OwnEntries $root 'cache'", "Get-OwnEntries $root 'state'"]) {
    assert.ok(removal.includes(source), source);
  }
});

Deno.test("a bundle has the programs of its platform, and no others", () => {
  const common = ["lib/waft.js", "lib/release-keys.json", "lib/installer/launcher.sh", "lib/installer/launcher.cmd"];
  const archive = (...names: string[]) =>
    new Map([...common, ...names].map((name) => [`waft-1.2.3/${name}`, utf8("")]));
  const posix = ["waft", "start", "deno"], windows = ["waft.cmd", "start.cmd", "deno.exe"];
  assert.equal(bundleFiles(archive(...posix), "1.2.3", "darwin/arm64").files.size, 7);
  const { executables } = bundleFiles(archive(...windows), "1.2.3", "windows/amd64");
  assert.deepEqual([...executables], ["waft.cmd", "deno.exe"]);
  assert.throws(() => bundleFiles(archive(...posix), "1.2.3", "windows/amd64"), /does not belong in a bundle/);
  assert.throws(() => bundleFiles(archive("waft.cmd", "deno.exe"), "1.2.3", "windows/amd64"), /lacks start\.cmd/);
});

Deno.test("bundling leaves nothing in the tree, also when it fails half-way", () =>
  inFolder((tree) => {
    const empty = [
      "cli",
      "engine/api/self_test_program",
      "engine/baseline/generated/kernel_arm64",
      "engine/baseline/generated/kernel_x64",
      "engine/baseline/generated/native_arm64",
      "engine/baseline/generated/native_x64",
      "engine/compile/body_compiler_arm64",
      "engine/compile/body_compiler_x64",
      "engine/compile/verify_module",
      "engine/host/systems/native_references",
      "engine/parallel/worker",
      "engine/portable/generated/native_compiler_arm64",
      "engine/portable/generated/native_compiler_x64",
      "engine/portable/generated/packed_compiler_arm64",
      "engine/portable/generated/packed_compiler_x64",
      "engine/portable/portable_form",
      "engine/runtime/instance/continuations",
      "engine/script/script_thread",
      "engine/text/parse_module",
      "engine/translate/body_analysis",
      "engine/validate/clauses",
      "engine/validate/code",
      "engine/validate/constant_rules",
      "engine/wasi/thread_worker",
      "engine/wasm/code_reader",
      "engine/wasm/fuel_groups",
      "engine/webassembly/js_prototypes",
      "project/base/deno_caches",
      "project/base/paths",
      "project/commands/first_run",
      "project/ops/versions/pinned_version",
      "project/plugins/socket_worker",
      "project/versions/bundle_layout",
      "registry/publish/check_process",
    ];
    writeTree(tree, {
      "deno.json": "{}",
      ...Object.fromEntries(empty.map((name) => [`${name}.ts`, "export {};\n"])),
      "project/commands/run/quick_run.ts": "not a program",
    });
    const before = readdirSync(tree).sort();
    assert.throws(() => bundleModules(tree, "1.0.0"), /quick_run/);
    assert.deepEqual(readdirSync(tree).sort(), before);
  }));

Deno.test("every URL of a source file has a place in the bundle", () => {
  const root = join(import.meta.dirname!, "../..");
  // Not in the bundle: the preload module, and programs of the repository.
  const left = /^engine\/drop_in\/|\/testing\/|_test\.ts$|^registry\/(?:load_benchmark|main)\.ts$/;
  let places = 0;
  for (const folder of ["engine", "component", "project", "registry"]) {
    for (const name of readdirSync(join(root, folder), { recursive: true, encoding: "utf8" })) {
      const path = `${folder}/${name}`;
      if (!path.endsWith(".ts") || path.includes("node_modules") || left.test(path)) continue;
      const text = readFileSync(join(root, path), "utf8");
      placeUrls(text, path);
      places += text.split("import.meta.url)").length - 1;
    }
  }
  assert.ok(places >= 14, `found ${places} URLs`);
});

Deno.test("release notes are the part of the changelog about a version, or of what no version has yet", () => {
  const changelog =
    "# Changelog\n\nWords.\n\n## Unreleased\n\n### Added\n\n- New.\n\n## 1.2.3 (2026-01-02)\n\n- Old.\n";
  assert.equal(releaseNotes(changelog, "1.2.3"), "# waft 1.2.3\n\n- Old.\n");
  assert.equal(releaseNotes(changelog, "1.2.4-nightly.1"), "# waft 1.2.4-nightly.1\n\n### Added\n\n- New.\n");
  assert.throws(() => releaseNotes("# Changelog\n", "1.2.3"), /says nothing about 1\.2\.3/);
  const own = readFileSync(new URL("../../CHANGELOG.md", import.meta.url), "utf8");
  assert.ok(releaseNotes(own, VERSION).length > 1000);
});

Deno.test("manifests of a release name its files with their digests", () => {
  const artifact = (kind: "standalone" | "bundle", platform: string, digit: string) => ({
    platform,
    kind,
    url: `releases/1.2.3/waft-1.2.3-${platform.replace("/", "-")}.tar.gz`,
    size: 1,
    sha256: digit.repeat(64),
  });
  const entry: ReleaseEntry = {
    publishedAt: "2026-01-02T03:04:05Z",
    commit: "0".repeat(40),
    minDeno: "2.9.0",
    artifacts: [
      artifact("bundle", "linux/amd64", "0"),
      artifact("standalone", "linux/amd64", "1"),
      artifact("standalone", "darwin/arm64", "2"),
      artifact("standalone", "windows/amd64", "3"),
    ],
  };
  const manifests = releaseManifests({ version: "1.2.3", entry, base: "https://site.example/" });
  const formula = manifests.get("waft.rb")!;
  const files = [...formula.matchAll(/on_(\w+) do\n\s+url "([^"]+)"\n\s+sha256 "(.)\3{63}"/g)].map((m) => m.slice(1));
  assert.deepEqual(files, [
    ["arm", "https://site.example/releases/1.2.3/waft-1.2.3-darwin-arm64.tar.gz", "2"],
    ["intel", "https://site.example/releases/1.2.3/waft-1.2.3-linux-amd64.tar.gz", "1"],
  ]);
  // The class and a method end besides the blocks.
  assert.equal(formula.match(/^ *end$/gm)!.length, formula.match(/\bdo$/gm)!.length + 2);
  assert.deepEqual(JSON.parse(manifests.get("waft-scoop.json")!).architecture, {
    "64bit": { url: "https://site.example/releases/1.2.3/waft-1.2.3-windows-amd64.tar.gz", hash: "3".repeat(64) },
  });
  assert.match(manifests.get("action.yml")!, /"https:\/\/site\.example\/releases\/1\.2\.3\/install\.sh"/);
  assert.doesNotMatch(manifests.get("action.yml")!, /\t/);
  const without = releaseManifests({
    version: "1.2.3",
    entry: { ...entry, artifacts: [] },
    base: "https://site.example",
  });
  assert.deepEqual([...without.keys()], ["action.yml"]);
});

Deno.test("the version that a commit is released as", () => {
  const [commit, time] = ["0123456789abcdef".padEnd(40, "0"), new Date("2026-09-01T02:03:04.567Z")];
  assert.equal(versionFor("official", "0.3.1", commit, time), "0.3.1");
  assert.equal(versionFor("canary", "0.3.1", commit, time), "0.3.1-canary.20260901020304.g0123456");
});

Deno.test("the version of the tree is the same in all its places", () => {
  for (const name of ["deno.json", "engine/deno.json", "component/deno.json"]) {
    const { version } = JSON.parse(readFileSync(new URL(`../../${name}`, import.meta.url), "utf8")) as {
      version: string;
    };
    assert.equal(version, VERSION, name);
  }
});
