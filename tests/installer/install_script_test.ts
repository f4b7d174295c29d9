/**
 * install.sh under each installed shell, piped, against a server on loopback with a small bundle: the arguments it
 * passes on, the inputs it refuses, and that a refusal leaves nothing behind.
 */
import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { installerFor } from "../../scripts/package/release_site.ts";
import { fakeBundle, ReleaseFixture, releaseKey } from "./release_fixture.ts";

const SCRIPT = readFileSync(fileURLToPath(new URL("../../installer/install.sh", import.meta.url)), "utf8");
const VERSION = "0.3.0";
/** Prints its arguments in place of installing itself. */
const PROGRAM = `#!/bin/sh\necho "waft $*"\n[ ! -e "$FAIL" ] || exit 3\n`;

function which(command: string): string | undefined {
  const found = spawnSync("sh", ["-c", `command -v ${command}`], { encoding: "utf8" }).stdout.trim();
  return found.startsWith("/") ? found : undefined;
}

const SHELLS: readonly (readonly string[])[] = [["dash"], ["bash"], ["zsh"], ["busybox", "sh"]].filter(([name]) =>
  which(name!) !== undefined
);

/** Addresses that are not this machine's, however they look. */
const NOT_LOOPBACK = [
  "http://example.com",
  "http://localhost.attacker.example",
  "http://localhost.attacker.example:8080/x",
  "http://127.0.0.1.attacker.example",
  "http://127.0.0.10",
  "http://localhost@attacker.example",
  "http://localhost:80@attacker.example",
  "http://localhost:80.attacker.example",
  "http://localhost:x@attacker.example:80",
  "http://127.0.0.1:@attacker.example:80/x",
  "http://[::1]:x@attacker.example:80",
  "http://localhost:/",
  "http://[::1].attacker.example",
  "http://localhost?.attacker.example",
  "http://localhost#.attacker.example",
  "http://localhost\\.attacker.example",
  "ftp://localhost",
  "https://",
  "localhost",
];

interface Result {
  readonly status: number | null;
  readonly out: string;
  readonly err: string;
}

/** Runs a script from standard input, as `curl … | sh` does. */
function pipe(
  shell: readonly string[],
  script: string,
  args: readonly string[],
  env: { [name: string]: string },
): Promise<Result> {
  return new Promise((resolve) => {
    const child = spawn(which(shell[0])!, [...shell.slice(1), "-s", "--", ...args], { env, detached: true });
    let out = "";
    let err = "";
    child.stdout.on("data", (chunk) => out += String(chunk));
    child.stderr.on("data", (chunk) => err += String(chunk));
    child.stdin.on("error", () => {}); // A shell that ends early does not read the rest.
    child.on("close", (status) => resolve({ status, out, err }));
    child.stdin.end(script);
  });
}

async function prepared(
  work: (all: {
    site: ReleaseFixture;
    script: string;
    run: (
      shell: readonly string[],
      args?: readonly string[],
      more?: { script?: string; env?: { [name: string]: string } },
    ) => Promise<Result>;
    /** Fails with this message and leaves nothing. */
    refuses: (
      message: RegExp,
      args?: readonly string[],
      env?: { [name: string]: string },
      shells?: readonly (readonly string[])[],
      expected?: number,
    ) => Promise<void>;
  }) => Promise<void>,
): Promise<void> {
  const site = new ReleaseFixture([], {});
  site.add(VERSION, fakeBundle(VERSION, { waft: PROGRAM }));
  await site.listen();
  const home = mkdtempSync(join(tmpdir(), "waft-script-"));
  const scratch = join(home, "tmp");
  mkdirSync(scratch);
  const entry = site.index.releases[VERSION];
  const script = installerFor(SCRIPT, { version: VERSION, entry, base: site.base, repository: "", keys: site.keys });
  const run = (
    shell: readonly string[],
    args: readonly string[] = [],
    more: { script?: string; env?: { [name: string]: string } } = {},
  ) =>
    pipe(shell, more.script ?? script, args, {
      PATH: "/usr/local/bin:/usr/bin:/bin",
      HOME: home,
      TMPDIR: scratch,
      FAIL: "/nonexistent",
      ...more.env,
    });
  try {
    await work({
      site,
      script,
      run,
      async refuses(message, args = ["--yes"], env = {}, shells = SHELLS, expected = 1) {
        for (const shell of shells) {
          const { status, err, out } = await run(shell, args, { env });
          assert.equal(status, expected, `${shell.join(" ")}: ${out}${err}`);
          assert.match(err, message, shell.join(" "));
          assert.equal(out, "");
          assert.deepEqual(readdirSync(home), ["tmp"], "nothing outside of the temporary directory");
          assert.deepEqual(readdirSync(scratch), [], "nothing in it, either");
        }
      },
    });
  } finally {
    await site.close();
    rmSync(home, { recursive: true, force: true });
  }
}

/** The platform of these tests' bundle. */
const ignore = Deno.build.os !== "linux" || Deno.build.arch !== "x86_64";

Deno.test({
  name: "install.sh: checks, unpacks, lets waft install itself, cleans up; under each shell",
  ignore,
  fn: () =>
    prepared(async ({ site, run }) => {
      const digest = site.index.releases[VERSION].artifacts[0].sha256;
      const common = `waft self install --base ${site.base} --sha256 ${digest} --commit ${
        "a".repeat(40)
      } --kind bundle`;
      for (const shell of SHELLS) {
        const yes = await run(shell, ["--yes", "--dir=/x y"]);
        assert.equal(yes.out, `${common} --dir /x y --yes\n`, yes.err);
        const byVariables = await run(shell, [], {
          env: { WAFT_INSTALL_YES: "1", WAFT_INSTALL_DIR: "/d", WAFT_NO_MODIFY_PATH: "1" },
        });
        assert.equal(byVariables.out, `${common} --dir /d --no-modify-path --yes\n`);
        // No terminal, no --yes: nothing but waft's own directories is touched.
        assert.equal((await run(shell)).out, `${common} --no-input --no-modify-path\n`);
        const other = await run(shell, ["-y", "--version", "nightly"]);
        assert.equal(other.out, `${common} --yes\nwaft version install nightly --use --base ${site.base}\n`);
        const failed = await run(shell, ["-y"], { env: { FAIL: "/" } });
        assert.equal(failed.status, 1);
        assert.match(failed.err, /nothing was activated/);
      }
    }),
});

Deno.test({
  name: "install.sh: a script that was cut off anywhere runs nothing",
  ignore,
  fn: () =>
    prepared(async ({ script, run, site }) => {
      for (let part = 1; part < 8; part++) {
        const cut = script.slice(0, Math.floor(script.length * part / 8));
        const { out } = await run(SHELLS[part % SHELLS.length], ["--yes"], { script: cut });
        assert.equal(out, "");
      }
      const { out } = await run(SHELLS[0], ["--yes"], { script: script.slice(0, script.lastIndexOf("main")) });
      assert.equal(out, "");
      assert.deepEqual(site.requests, []);
    }),
});

Deno.test({
  name: "install.sh: wrong hash, web page, missing file, redirect to plain http elsewhere, truncated body",
  ignore,
  fn: () =>
    prepared(async ({ site, refuses }) => {
      const path = site.path(VERSION);
      const good = site.served.get(path)!;
      const bad = good.slice();
      bad[bad.length - 30] ^= 1;
      site.served.set(path, bad);
      await refuses(/does not match the release\n.*SHA-256.*\n.*expected.*\n.*nothing was changed/);
      site.served.set(path, new TextEncoder().encode("<!DOCTYPE html><html>log in</html>"));
      await refuses(/is a web page, not an archive/);
      site.served.delete(path);
      await refuses(/cannot be downloaded/);
      site.served.set(path, good);
      site.intercept = (_, response) => {
        response.writeHead(302, { location: "ftp://127.0.0.1/x" }).end();
        return true;
      };
      await refuses(/cannot be downloaded/);
      site.intercept = (_, response) => {
        response.writeHead(200);
        response.end(good.subarray(0, 200));
        return true;
      };
      await refuses(/does not match the release/);
    }),
});

Deno.test({
  name: "install.sh: the list of checksums must be signed by a key of the release, where OpenSSL 3 is; else it is said",
  ignore: ignore || which("openssl") === undefined,
  fn: () =>
    prepared(async ({ site, script, run, refuses }) => {
      const artifact = site.index.releases[VERSION].artifacts[0];
      const name = artifact.url.split("/").at(-1)!;
      const good = `${artifact.sha256}  ${name}\n`;
      const installs = async (message: RegExp, more: { script?: string; env?: { [name: string]: string } } = {}) => {
        for (const shell of SHELLS) {
          const { out, err, status } = await run(shell, ["--yes"], more);
          assert.equal(status, 0, `${shell.join(" ")}: ${err}`);
          assert.match(out, /^waft self install/);
          assert.match(err, message, shell.join(" "));
        }
      };
      await installs(/checked: the SHA-256 of waft-.*, and that the release's key .{43}= signed it/);
      // Two keys, as during a key rotation: the script knows both, the second signs the list.
      const next = releaseKey();
      const both = script.replace(site.key.publicKey, `${site.key.publicKey}","${next.publicKey}`);
      site.addSums(VERSION, `${"0".repeat(64)}  another.tar.gz\n${good}`, next);
      await installs(/that the release's key .* signed it/, { script: both });
      await refuses(
        /SHA256SUMS is signed by no key of release 0\.3\.0\n.*do not trust the site or the network; nothing was changed/,
      );
      site.addSums(VERSION, good);
      site.served.set(`/releases/${VERSION}/SHA256SUMS`, new TextEncoder().encode(`${good}more\n`));
      await refuses(/is signed by no key/);
      site.addSums(VERSION, `${"0".repeat(64)}  ${name}\n`);
      await refuses(/differs between the signed list and this script\n.*list: 0{64}\n/, ["--yes"], {}, [[
        "dash",
      ]]);
      site.addSums(VERSION, `${artifact.sha256}  another.tar.gz\n`);
      await refuses(/list: none/, ["--yes"], {}, [SHELLS.at(-1)!]);
      for (const [at, damaged] of ["", "!! !!\n", "aa\n", "a b c"].entries()) {
        site.served.set(`/releases/${VERSION}/SHA256SUMS.sig`, new TextEncoder().encode(damaged));
        await refuses(/is signed by no key/, ["--yes"], {}, [SHELLS[at % SHELLS.length]]);
      }
      site.served.delete(`/releases/${VERSION}/SHA256SUMS.sig`);
      await refuses(/SHA256SUMS\.sig cannot be downloaded/);
      // Without an OpenSSL that verifies Ed25519, the digest is still checked, and the skipped check is reported.
      const folder = mkdtempSync(join(tmpdir(), "waft-tools-"));
      try {
        writeFileSync(join(folder, "openssl"), "#!/bin/sh\necho LibreSSL 3.3.6\n", { mode: 0o755 });
        const env = { PATH: `${folder}:/usr/local/bin:/usr/bin:/bin` };
        await installs(/not checked: the release's signature, .*OpenSSL 3 or newer \(here: LibreSSL 3\.3\.6\)/, {
          env,
        });
      } finally {
        rmSync(folder, { recursive: true, force: true });
      }
    }),
});

Deno.test({
  name: "install.sh: missing tools, wrong options, unsafe addresses, other systems are explained",
  ignore,
  fn: () =>
    prepared(async ({ refuses, run }) => {
      await refuses(/unknown option --wrong/, ["--wrong"], {}, SHELLS, 2);
      await refuses(/--dir needs a value/, ["--dir"], {}, SHELLS, 2);
      for (const base of NOT_LOOPBACK) await refuses(/must use https/, ["--base", base, "--yes"], {}, SHELLS, 2);
      await refuses(/a standalone build is one program/, ["--kind", "standalone"]);
      await refuses(/waft is not installed here/, ["--uninstall", "--yes"]);
      await refuses(/neither HOME nor WAFT_HOME is set/, ["--yes"], { HOME: "" });
      // busybox uses its built-in tools regardless of PATH.
      const others = SHELLS.filter(([name]) => name !== "busybox");
      const folder = mkdtempSync(join(tmpdir(), "waft-tools-"));
      try {
        const tools = (names: readonly string[]): string => {
          const bin = mkdtempSync(join(folder, "bin-"));
          for (const name of names) symlinkSync(which(name)!, join(bin, name));
          return bin;
        };
        const base = ["uname", "id", "getconf", "mktemp", "rm", "gzip", "tar", "cut", "chmod"];
        await refuses(/neither curl nor wget is installed/, ["--yes"], { PATH: tools(base) }, others);
        await refuses(/none of sha256sum, shasum and openssl/, ["--yes"], { PATH: tools([...base, "curl"]) }, others);
        const noTar = base.filter((name) => name !== "tar");
        await refuses(/tar is not installed/, ["--yes"], { PATH: tools([...noTar, "curl", "sha256sum"]) }, others);
        for (const fetcher of ["curl", "wget"]) {
          if (which(fetcher) === undefined) continue;
          for (const hasher of ["sha256sum", "openssl"]) {
            const path = tools([...base, fetcher, hasher]);
            const { out, err } = await run(["dash"], ["--yes"], { env: { PATH: path } });
            assert.match(out, /^waft self install/, `${fetcher} ${hasher} ${err}`);
          }
        }
        const system = (name: string, machine: string): string => {
          const bin = mkdtempSync(join(folder, "bin-"));
          spawnSync("sh", [
            "-c",
            `printf '#!/bin/sh\\ncase $1 in -s) echo ${name};; *) echo ${machine};; esac' >${bin}/uname; chmod 755 ${bin}/uname`,
          ]);
          return `${bin}:/usr/bin:/bin`;
        };
        await refuses(/waft does not run on Plan9/, ["--yes"], { PATH: system("Plan9", "x86_64") }, others);
        await refuses(/no build for riscv64/, ["--yes"], { PATH: system("Linux", "riscv64") }, others);
        await refuses(
          /note: waft has not been run by its authors on macOS; .*\n.*has no bundle for darwin\/arm64\n.*--from-source/,
          ["--yes"],
          {
            PATH: system("Darwin", "arm64"),
          },
          others,
        );
        await refuses(/and there is no deno on the PATH/, ["--yes", "--from-source"], {
          PATH: tools([...base, "curl", "sha256sum"]),
        }, others);
        const old = tools([...base, "curl", "sha256sum", "sed"]);
        spawnSync("sh", [
          "-c",
          `printf '#!/bin/sh\\necho deno 2.8.10' >${old}/deno; chmod 755 ${old}/deno; ln -s /bin/sh ${old}/sh`,
        ]);
        await refuses(
          /needs Deno 2\.9\.0 or newer; .*deno is 2\.8\.10/,
          ["--yes", "--from-source"],
          { PATH: old },
          others,
        );
      } finally {
        rmSync(folder, { recursive: true, force: true });
      }
    }),
});

Deno.test({
  name: "install.sh: --uninstall finds the command where the receipt says, and tells of an interrupted uninstallation",
  ignore,
  fn: () =>
    prepared(async ({ run }) => {
      const folder = mkdtempSync(join(tmpdir(), "waft-state-"));
      try {
        const bin = join(folder, "my tools");
        mkdirSync(bin);
        mkdirSync(join(folder, "waft"));
        writeFileSync(
          join(folder, "waft", "install-receipt.json"),
          JSON.stringify({ base: "x", bin, created: [] }, null, 2),
        );
        for (const shell of SHELLS) {
          writeFileSync(join(bin, "waft"), '#!/bin/sh\necho "$@"\n', { mode: 0o755 });
          const env = { XDG_STATE_HOME: folder };
          assert.equal((await run(shell, ["--uninstall", "--yes"], { env })).out, "self uninstall --yes\n");
          rmSync(join(bin, "waft"));
          const { status, err } = await run(shell, ["--uninstall", "--yes"], { env });
          assert.equal(status, 1);
          assert.match(err, /command is missing, but other files remain .*\n.*interrupted: .* install waft once more/);
        }
      } finally {
        rmSync(folder, { recursive: true, force: true });
      }
    }),
});

Deno.test({
  name: "install.sh: shellcheck has nothing to say",
  ignore: which("shellcheck") === undefined,
  fn() {
    const folder = fileURLToPath(new URL("../../installer/", import.meta.url));
    const files = readdirSync(folder).filter((name) => name.endsWith(".sh")).map((name) => join(folder, name));
    assert.ok(files.length >= 4);
    const { stdout, status } = spawnSync("shellcheck", ["-s", "sh", ...files], { encoding: "utf8" });
    assert.equal(stdout, "");
    assert.equal(status, 0);
  },
});
