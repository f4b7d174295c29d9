/**
 * The whole path, on loopback, in temporary home directories: release → serve → `curl … | sh` in a terminal → a new
 * shell finds waft → another version → run → use → roll back → uninstall, which leaves nothing; under each shell, with
 * and without WAFT_HOME. Builds two real releases of HEAD with this machine's Deno, so it runs only when
 * WAFT_TEST_INSTALLER is `whole` (`deno task test:installer`).
 */
import { NEEDS_TESTSUITE, TESTSUITE } from "../support/testsuite.ts";
import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import {
  createReadStream,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { platformName } from "../../project/base/paths.ts";
import type { ReleaseIndex } from "../../project/versions/release_index.ts";
import { cloneAt, releaseKey } from "./release_fixture.ts";

const WHOLE = process.env["WAFT_TEST_INSTALLER"] === "whole";

function has(command: string): boolean {
  return spawnSync("sh", ["-c", `command -v ${command}`]).status === 0;
}

/** The released commit; commits made during the test do not change it. */
const COMMIT = WHOLE ? spawnSync("git", ["rev-parse", "HEAD"], { encoding: "utf8" }).stdout.trim() : "";

/** Runs the script of a clone. */
function release(clone: string, out: string, key: string, channel: string, base: string): string {
  const args = [
    "--commit",
    COMMIT,
    "--out",
    out,
    "--key",
    key,
    "--channel",
    channel,
    "--base",
    base,
    "--own-deno",
    "--no-packages",
    "--no-singles",
  ];
  const { status, stdout, stderr } = spawnSync(
    process.execPath,
    [
      "run",
      "-A",
      "--no-check",
      join(clone, "scripts", "release.ts"),
      ...args,
      "--platform",
      platformName(),
      "--now",
      "2026-11-01T00:00:00Z",
      "--expire-days",
      "36500",
    ],
    { encoding: "utf8" },
  );
  assert.equal(status, 0, stderr);
  return stdout.trim();
}

/** Runs a program to its end without blocking this process's server. */
function finish(
  program: string,
  args: readonly string[],
  options: { env: { [name: string]: string | undefined }; cwd?: string; limitMs?: number },
): Promise<{ status: number | null; stdout: string; stderr: string }> {
  return new Promise((resolve) => {
    const child = spawn(program, args, { ...options, stdio: ["ignore", "pipe", "pipe"] });
    let stdout = "";
    let stderr = "";
    const timer = setTimeout(() => child.kill("SIGKILL"), options.limitMs ?? 90_000);
    child.stdout.on("data", (chunk) => stdout += String(chunk));
    child.stderr.on("data", (chunk) => stderr += String(chunk));
    child.on("close", (status) => {
      clearTimeout(timer);
      resolve({ status, stdout, stderr });
    });
  });
}

/** Runs a command in a terminal and answers its prompts: [prompt, answer]. */
function inTerminal(
  command: string,
  env: { [name: string]: string },
  answers: readonly (readonly [question: RegExp, answer: string])[],
): Promise<{ status: number | null; text: string }> {
  return new Promise((resolve) => {
    const child = spawn("script", ["-qec", command, "/dev/null"], { env });
    let text = "";
    let answered = 0;
    const timer = setTimeout(() => child.kill("SIGKILL"), 90_000);
    child.stdout.on("data", (chunk) => {
      text += String(chunk);
      const next = answers[answered];
      if (next !== undefined && next[0].test(text)) {
        answered++;
        child.stdin.write(`${next[1]}\r`);
      }
    });
    child.on("close", (status) => {
      clearTimeout(timer);
      resolve({
        status,
        text: answered === answers.length ? text : `${text}\n[asked ${answered} of ${answers.length}]`,
      });
    });
  });
}

Deno.test({
  name: WHOLE
    ? "end to end: from a release to an uninstallation that leaves nothing"
    : "end to end (ignored: builds real releases; run `deno task test:installer`)",
  ignore: !WHOLE || Deno.build.os !== "linux" || !["script", "curl"].every(has),
  async fn(t) {
    const folder = mkdtempSync(join(tmpdir(), "waft-e2e-"));
    const out = join(folder, "site");
    const key = join(folder, "key.pem");
    writeFileSync(key, releaseKey().pem);
    const clone = join(folder, "clone");
    cloneAt(COMMIT, clone);
    const server = createServer((request, response) => {
      const path = join(out, decodeURIComponent(request.url ?? "/"));
      if (path.includes("..") || !existsSync(path) || !statSync(path).isFile()) {
        response.writeHead(404).end();
        return;
      }
      response.writeHead(200, { "content-length": statSync(path).size });
      createReadStream(path).pipe(response);
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const base = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    const clean = { PATH: "/usr/local/bin:/usr/bin:/bin", TERM: "xterm", LANG: "C.UTF-8" };
    try {
      let nightly = "";
      let canary = "";
      const made = await t.step("two releases; the same commit gives the same bytes", () => {
        nightly = release(clone, out, key, "nightly", base);
        const again = join(folder, "again");
        assert.equal(release(clone, again, key, "nightly", base), nightly);
        for (const name of ["install.sh", "releases/index.json", "releases/index.json.sig"]) {
          assert.equal(readFileSync(join(again, name), "utf8"), readFileSync(join(out, name), "utf8"), name);
        }
        const sums = (site: string): string => readFileSync(join(site, "releases", nightly, "SHA256SUMS"), "utf8");
        assert.equal(sums(again), sums(out));
        rmSync(again, { recursive: true });
        canary = release(clone, out, key, "canary", base);
        const index = JSON.parse(readFileSync(join(out, "releases", "index.json"), "utf8")) as ReleaseIndex;
        assert.equal(index.sequence, 2);
        assert.deepEqual(index.channels, { nightly, canary });
      });
      if (!made) return;
      const module = join(folder, "add.wat");
      writeFileSync(
        module,
        '(module (func (export "add") (param i32 i32) (result i32) (i32.add (local.get 0) (local.get 1))))',
      );
      /** Lets an installed waft serve the releases as a registry. */
      const servedBy = async (
        waft: string,
        env: { [name: string]: string },
        work: (site: string) => Promise<void>,
      ): Promise<void> => {
        const args = ["registry", "--port", "0", "--data", join(folder, "registry"), "--releases", out];
        const child = spawn(waft, args, { env, stdio: ["ignore", "pipe", "pipe"] });
        const closed = new Promise((resolve) => child.on("close", resolve));
        let said = "";
        try {
          const site = await new Promise<string>((resolve, reject) => {
            const listen = (chunk: unknown): void => {
              said += String(chunk);
              const address = /^registry: (http:\S+)/m.exec(said)?.[1];
              if (address !== undefined) resolve(address);
            };
            child.stdout.on("data", listen);
            child.stderr.on("data", listen);
            child.on("close", () => reject(new Error(`the registry ended: ${said}`)));
          });
          await work(site);
        } finally {
          child.kill("SIGTERM");
          await closed;
        }
      };
      const shells = ["dash", "bash", "zsh", "busybox sh"].filter((shell) => has(shell.split(" ")[0]!));
      for (const shell of shells) {
        for (const withHome of shell === "bash" ? [false, true] : [false]) {
          await t.step(`${shell}${withHome ? ", WAFT_HOME" : ""}`, async () => {
            const home = mkdtempSync(join(folder, "home "));
            const scratch = join(home, "tmp");
            mkdirSync(scratch);
            const env: { [name: string]: string } = {
              ...clean,
              HOME: home,
              TMPDIR: scratch,
              SHELL: `/bin/${shell === "busybox sh" ? "sh" : shell}`,
              ...(withHome ? { WAFT_HOME: join(home, "w") } : {}),
            };
            const installed = await inTerminal(`curl -fsSL ${base}/install.sh | ${shell}`, env, [
              [/Directory of the command \[.*\]: /, ""],
              [/Add them\? \[Y\/n\] /, "y"],
            ]);
            assert.equal(installed.status, 0, installed.text);
            assert.match(installed.text, /installed waft .*is on the PATH of new shells/s);
            assert.deepEqual(readdirSync(scratch), []);
            const start = shell === "bash" ? ".bashrc" : shell === "zsh" ? ".zshenv" : ".profile";
            /** In a new shell. */
            const fresh = async (command: string): Promise<string> => {
              const [program, ...args] = shell.split(" ");
              const { stdout, stderr, status } = await finish(
                program!,
                [...args, "-c", `${shell === "zsh" ? "" : `. "$HOME/${start}"; `}${command}`],
                { env, cwd: home },
              );
              assert.equal(status, 0, `${command}: ${stdout}${stderr}`);
              return stdout;
            };
            const bin = withHome ? join(home, "w", "bin") : join(home, ".waft", "bin");
            assert.equal(await fresh("command -v waft"), `${join(bin, "waft")}\n`);
            assert.equal(await fresh("waft --version"), `${canary}\n`);
            assert.match(
              await fresh("waft version install nightly"),
              new RegExp(`installed ${nightly.replaceAll(".", "\\.")}`),
            );
            assert.equal(await fresh(`waft run --invoke add "${module}" 2 3`), "5\n");
            await fresh("waft version use nightly");
            assert.equal(await fresh("waft --version"), `${nightly}\n`);
            assert.equal(await fresh(`waft run --invoke add "${module}" 2 3`), "5\n");
            assert.equal(await fresh(`waft +${canary} --version`), `${canary}\n`);
            await fresh("waft version rollback");
            assert.equal(await fresh("waft --version"), `${canary}\n`);
            assert.match(await fresh("waft version list"), /\* .*canary[\s\S]*- .*nightly/);
            assert.match(await fresh("waft self uninstall --yes"), /waft is removed/);
            assert.deepEqual(readdirSync(home), ["tmp"]);
            assert.deepEqual(readdirSync(scratch), []);
          });
        }
      }
      await t.step(
        "what is installed is what was tested: the README's first command, the specification suite",
        async () => {
          const home = mkdtempSync(join(folder, "home "));
          const env = { ...clean, HOME: home, SHELL: "/bin/sh" };
          const installed = await finish("sh", ["-c", `curl -fsSL ${base}/install.sh | sh -s -- --yes`], { env });
          assert.equal(installed.status, 0, installed.stderr);
          assert.match(installed.stderr, /checked: the SHA-256 of .*, and that the release's key .* signed it/);
          const waft = join(home, ".waft", "bin", "waft");
          const first = /^(?:waft|.*\bcli\.ts) (run \S.*?) +# prints (\S+)$/m.exec(
            readFileSync(join(clone, "README.md"), "utf8"),
          );
          assert.ok(first !== null, "the README begins with a command and what it prints");
          const { stdout, stderr } = await finish(waft, first[1]!.split(" "), { env, cwd: clone });
          assert.equal(stdout, `${first[2]}\n`, stderr);
          const suite = TESTSUITE;
          if (existsSync(suite)) {
            const ran = await finish(waft, ["wast", suite], { env, limitMs: 300_000 });
            const [, passed, failed] = /^([0-9]+) passed, ([0-9]+) failed, 0 skipped$/m.exec(ran.stdout) ?? [];
            assert.equal(failed, "0", ran.stdout.slice(-2000) + ran.stderr);
            assert.ok(Number(passed) > 60_000, `${passed} assertions`);
            assert.equal(ran.status, 0);
          } else console.log(`the specification's suite is left out${NEEDS_TESTSUITE}`);
          await servedBy(waft, env, async (site) => {
            const other = mkdtempSync(join(folder, "home "));
            const command = `curl -fsSL ${site}/install.sh | sh -s -- --yes --base ${site} --version nightly`;
            const more = await finish("sh", ["-c", command], { env: { ...env, HOME: other } });
            assert.equal(more.status, 0, more.stderr);
            const second = join(other, ".waft", "bin", "waft");
            const version = await finish(second, ["--version"], { env: { ...env, HOME: other } });
            assert.equal(version.stdout, `${nightly}\n`, "what --version named is the active one");
          });
          await finish(waft, ["self", "uninstall", "--yes"], { env });
          assert.deepEqual(readdirSync(home), []);
        },
      );
      /** Installs from source with a script and uninstalls; returns the script's output. */
      const fromSource = async (command: string, path: string, more?: (waft: string) => Promise<void>) => {
        const home = mkdtempSync(join(folder, "home "));
        const env = {
          ...process.env,
          ...clean,
          PATH: path,
          HOME: home,
          DENO_DIR: process.env["DENO_DIR"] ?? join(process.env["HOME"]!, ".cache", "deno"),
          SHELL: "/bin/sh",
        };
        const { status, stderr } = await finish("sh", ["-c", command], { env, limitMs: 180_000 });
        assert.equal(status, 0, stderr);
        const waft = join(home, ".waft", "bin", "waft");
        const ran = await finish(waft, ["run", "--invoke", "add", module, "2", "3"], { env });
        assert.equal(ran.stdout, "5\n", ran.stderr);
        await more?.(waft);
        await finish(waft, ["self", "uninstall", "--yes"], { env });
        assert.deepEqual(readdirSync(home).filter((name) => name !== ".npm"), []);
        return stderr;
      };
      const repository = join(folder, "repository.git");
      const scriptOf = (withRepository: string): string => {
        const file = join(folder, "install.sh");
        const text = readFileSync(join(out, "releases", canary, "install.sh"), "utf8");
        assert.ok(text.includes("RELEASE_REPOSITORY=''"));
        writeFileSync(file, text.replace("RELEASE_REPOSITORY=''", `RELEASE_REPOSITORY='${withRepository}'`));
        return file;
      };
      await t.step("from source: a clone where Git is, at the release's commit and no other", async () => {
        assert.equal(spawnSync("git", ["clone", "--quiet", "--bare", clone, repository]).status, 0);
        const command = `sh '${scriptOf(repository)}' --yes --from-source`;
        const said = await fromSource(command, clean.PATH, async (waft) => {
          const env = { ...clean, HOME: join(waft, "..", "..", "..") };
          assert.equal((await finish(waft, ["--version"], { env })).stdout, `${canary}\n`);
          const { stdout, stderr } = await finish(waft, ["version", "install", "nightly"], { env });
          assert.match(stdout, /installed/, `it trusts the release's keys: ${stderr}`);
        });
        assert.match(said, /cloning .*checked: the clone is at commit [0-9a-f]{40}, which this script names/s);
        const away = await finish("sh", ["-c", `sh '${scriptOf(join(folder, "nowhere"))}' --yes --from-source`], {
          env: { ...process.env, ...clean, HOME: folder },
        });
        assert.equal(away.status, 1);
        assert.match(away.stderr, /nowhere cannot be cloned\n.*nothing was changed/);
      });
      await t.step("from source: the archive where Git is not", async () => {
        const tools = join(folder, "tools");
        mkdirSync(tools);
        for (const directory of ["/bin", "/usr/bin", "/usr/local/bin"]) {
          for (const name of readdirSync(directory)) {
            if (!name.startsWith("git") && !existsSync(join(tools, name))) {
              try {
                symlinkSync(join(directory, name), join(tools, name));
              } catch {
                // A dangling link of the same name.
              }
            }
          }
        }
        const said = await fromSource(`sh '${scriptOf(repository)}' --yes --from-source`, tools);
        assert.match(said, /downloading .*-source\.tar\.gz.*checked: the SHA-256 of waft-.*-source\.tar\.gz/s);
        assert.ok(!said.includes("cloning"));
      });
      await t.step("from source: a checkout, of which nothing changes", async () => {
        const checkout = join(folder, "checkout");
        assert.equal(spawnSync("git", ["clone", "--quiet", repository, checkout]).status, 0);
        const said = await fromSource(
          `sh '${checkout}/installer/install.sh' --yes --from-source`,
          clean.PATH,
          async (waft) => {
            const { stderr } = await finish(waft, ["version", "install", "nightly"], {
              env: { ...clean, HOME: join(waft, "..", "..", "..") },
            });
            assert.match(stderr, /signature\.keys: this build of waft has no release keys/);
          },
        );
        assert.match(said, /taking the sources of /);
        const status = spawnSync("git", ["status", "--short", "--ignored"], { cwd: checkout, encoding: "utf8" });
        assert.equal(status.stdout, "");
      });
    } finally {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
      rmSync(folder, { recursive: true, force: true });
    }
  },
});
