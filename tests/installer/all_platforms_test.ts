/**
 * A release for all platforms, built twice: equal bytes and the expected contents. Bundles contain the Deno of their
 * platform and are otherwise equal. The arm64 bundle is installed and started through its launcher (under qemu on other
 * machines), the JSR packages run, the npm packages name each other. Fetches Denos from npm and takes minutes, so it
 * runs only when WAFT_TEST_INSTALLER is `platforms` (`deno task test:release`).
 */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { chmodSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import process from "node:process";
import { fileURLToPath } from "node:url";
import { readArchive } from "../../project/packages/archive.ts";
import { BUNDLE_LIMITS, bundleFiles } from "../../project/ops/versions/version.ts";
import { parseReleaseIndex, type ReleaseEntry } from "../../project/versions/release_index.ts";
import { arm64 } from "../../scripts/hosts/arm64_emulator.ts";
import { readPack } from "../../scripts/package/npm_package.ts";
import { PINNED_DENO } from "../../scripts/package/pinned_deno.ts";
import { bundleLayout } from "../../project/versions/bundle_layout.ts";
import { cloneAt, releaseKey } from "./release_fixture.ts";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
const WHOLE = process.env["WAFT_TEST_INSTALLER"] === "platforms";
const NATIVE_ARM = Deno.build.os === "linux" && Deno.build.arch === "aarch64";

/** The first bytes of each platform's programs: ELF's class, order and machine; Mach-O's magic number and processor. */
const MAGIC: { readonly [platform: string]: readonly (readonly [at: number, hex: string])[] } = {
  "linux/amd64": [[0, "7f454c460201"], [18, "3e00"]],
  "linux/arm64": [[0, "7f454c460201"], [18, "b700"]],
  "darwin/amd64": [[0, "cffaedfe07000001"]],
  "darwin/arm64": [[0, "cffaedfe0c000001"]],
  "windows/amd64": [[0, "4d5a"]],
};

function sha256(bytes: Uint8Array): string {
  return createHash("sha256").update(bytes).digest("hex");
}

function run(program: string, args: readonly string[], options: { cwd?: string; env?: object } = {}): string {
  const { status, stdout, stderr, error } = spawnSync(program, args, {
    cwd: options.cwd,
    env: { ...process.env, NO_COLOR: "1", ...options.env },
    encoding: "utf8",
    timeout: 590_000,
  });
  assert.equal(status, 0, `${program} ${args.slice(0, 4).join(" ")}: ${error?.message ?? stdout + stderr}`);
  return stdout.trim();
}

/** The released commit; commits made during the test do not change it. */
const COMMIT = WHOLE ? run("git", ["rev-parse", "HEAD"], { cwd: ROOT }) : "";

/** Runs the script of a clone. */
function release(clone: string, out: string, key: string): string {
  const options = [
    "--commit",
    COMMIT,
    "--out",
    out,
    "--key",
    key,
    "--channel",
    "nightly",
    "--now",
    "2026-11-01T00:00:00Z",
  ];
  return run(process.execPath, ["run", "-A", "--no-check", join(clone, "scripts/package/release.ts"), ...options]);
}

function unpack(files: ReadonlyMap<string, Uint8Array>, folder: string): void {
  for (const [path, bytes] of files) {
    mkdirSync(dirname(join(folder, path)), { recursive: true });
    writeFileSync(join(folder, path), bytes);
  }
}

Deno.test({
  name: WHOLE
    ? "a release for all platforms"
    : "a release for all platforms (ignored: fetches four Denos; run `deno task test:release`)",
  ignore: !WHOLE,
  async fn(t) {
    const folder = mkdtempSync(join(tmpdir(), "waft-platforms-"));
    try {
      const key = join(folder, "key.pem");
      writeFileSync(key, releaseKey().pem);
      const clone = join(folder, "clone");
      cloneAt(COMMIT, clone);
      const site = join(folder, "site");
      let version = "";
      let entry!: ReleaseEntry;
      const read = (kind: string, platform: string, part = ""): Uint8Array => {
        const found = entry.artifacts.find((a) => a.kind === kind && a.platform === platform && a.url.includes(part));
        assert.ok(found !== undefined, `${kind} ${platform} ${part}`);
        return readFileSync(join(site, found.url));
      };
      const built = await t.step("two runs give the same bytes", () => {
        version = release(clone, site, key);
        const digests = (root: string): string[] =>
          (readdirSync(root, { recursive: true, withFileTypes: true }))
            .filter((file) => file.isFile())
            .map((file) =>
              `${join(file.parentPath.slice(root.length), file.name)} ${
                sha256(readFileSync(join(file.parentPath, file.name)))
              }`
            ).sort();
        const first = digests(site);
        const again = join(folder, "again");
        assert.equal(release(clone, again, key), version);
        assert.deepEqual(digests(again), first);
        rmSync(again, { recursive: true });
        const index = parseReleaseIndex(readFileSync(join(site, "releases", "index.json")), "index.json");
        entry = index.releases[version];
        const kinds = entry.artifacts.map((a) => `${a.kind} ${a.platform}`);
        for (const { platform } of PINNED_DENO) {
          for (const kind of ["bundle", "standalone"]) assert.ok(kinds.includes(`${kind} ${platform}`), platform);
        }
        for (const [kind, count] of [["source", 1], ["npm", 2], ["jsr", 2]] as const) {
          assert.equal(kinds.filter((k) => k === `${kind} any`).length, count, kind);
        }
        // The list of checksums is that of the index, and of the files.
        const sums = readFileSync(join(site, "releases", version, "SHA256SUMS"), "utf8");
        assert.equal(sums, entry.artifacts.map((a) => `${a.sha256}  ${a.url.split("/").at(-1)}\n`).join(""));
        for (const { url, sha256: digest } of entry.artifacts) {
          assert.equal(sha256(readFileSync(join(site, url))), digest, url);
        }
      });
      if (!built) return;

      let arm: ReadonlyMap<string, Uint8Array> = new Map();
      await t.step("bundles: each has the Deno of its platform, all else is the same", () => {
        let common: string | undefined;
        for (const { platform } of PINNED_DENO) {
          const { files } = bundleFiles(readArchive(read("bundle", platform), BUNDLE_LIMITS), version, platform);
          const own = bundleLayout(platform);
          const deno = files.get(own.deno)!;
          for (const [at, hex] of MAGIC[platform]) {
            assert.equal(Buffer.from(deno.subarray(at, at + hex.length / 2)).toString("hex"), hex, platform);
          }
          const rest = [...files].filter(([name]) => ![own.deno, own.command, own.start].includes(name))
            .map(([name, bytes]) => `${name} ${sha256(bytes)}`);
          const digest = sha256(new TextEncoder().encode(rest.sort().join("\n")));
          common ??= digest;
          assert.equal(digest, common, platform);
          if (platform === "linux/arm64") arm = files;
        }
      });

      await t.step("linux/arm64: installs itself, starts through its launcher, validates and runs", () => {
        const bundle = join(folder, "arm64");
        unpack(arm, bundle);
        for (const name of ["deno", "waft"]) chmodSync(join(bundle, name), 0o755);
        let environment: Readonly<Record<string, string>> = {};
        if (!NATIVE_ARM) {
          // The system cannot start the program itself; a script in its place does with the emulator.
          const emulated = arm64();
          environment = emulated.environment;
          const program = join(folder, "deno-arm64");
          writeFileSync(program, arm.get("deno")!, { mode: 0o755 });
          const script = `#!/bin/sh\nexec '${emulated.command[0]}' '${program}' "$@"\n`;
          writeFileSync(join(bundle, "deno"), script, { mode: 0o755 });
        }
        const home = join(folder, "home");
        mkdirSync(home);
        const env = {
          ...environment,
          HOME: home,
          SHELL: "/bin/sh",
          WAFT_HOME: "",
          XDG_DATA_HOME: "",
          XDG_STATE_HOME: "",
          XDG_CACHE_HOME: "",
        };
        run(join(bundle, "waft"), ["self", "install", "--yes", "--no-modify-path"], { env });
        const waft = (...args: string[]): string => run(join(home, ".waft", "bin", "waft"), args, { env, cwd: clone });
        assert.equal(waft("--version"), version);
        waft("validate", "examples/fib.wat");
        assert.equal(waft("run", "examples/fib.wat", "20"), "6765");
        assert.ok(waft("version", "list").includes(`*  ${version}`));
      });

      await t.step("packages for JSR: the command runs on the engine of the same version", () => {
        const packages = new Map(
          ["engine", "component", "cli"].map((name) => [name, readPack(read("jsr", "any", `waft-${name}-`))]),
        );
        for (const [name, files] of packages) unpack(files, join(folder, "jsr", name));
        const imports: { [specifier: string]: string } = {};
        for (const part of ["engine", "component"]) {
          const { version: sent, exports } = JSON.parse(
            readFileSync(join(folder, "jsr", part, "deno.json"), "utf8"),
          ) as { version: string; exports: { [name: string]: string } };
          assert.equal(sent, version);
          for (const [name, path] of Object.entries(exports)) {
            imports[`jsr:@waft/${part}@^${version}${name.slice(1)}`] = join(folder, "jsr", part, path);
          }
        }
        const map = join(folder, "jsr", "imports.json");
        writeFileSync(map, JSON.stringify({ imports }));
        const cli = join(folder, "jsr", "cli", "cli.ts");
        const options = ["run", "-A", "--quiet", "--no-config", "--no-lock", "--no-check", "--import-map", map];
        assert.equal(run(process.execPath, [...options, cli, "run", "examples/fib.wat", "20"], { cwd: clone }), "6765");
        assert.equal(run(process.execPath, [...options, cli, "--version"], { cwd: clone }), version);
      });

      await t.step("packages for npm: their versions, and each other's", () => {
        const manifest = (name: string) =>
          JSON.parse(new TextDecoder().decode(readPack(read("npm", "any", `waft-${name}-`)).get("package.json"))) as {
            name: string;
            version: string;
            dependencies: { [name: string]: string };
          };
        const parts = ["engine", "component", "cli"];
        assert.deepEqual(parts.map((name) => manifest(name).version), [version, version, version]);
        const uses = (name: string) => Object.entries(manifest(name).dependencies).filter(([on]) => /^@waft/.test(on));
        assert.deepEqual(uses("component"), [["@waft/engine", version]]);
        assert.deepEqual(uses("cli"), [["@waft/engine", version], ["@waft/component", version]]);
      });
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  },
});
