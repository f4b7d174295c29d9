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
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
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

/** A plain environment, without the developer's own settings. */
const CLEAN = { PATH: "/usr/local/bin:/usr/bin:/bin", TERM: "xterm", LANG: "C.UTF-8" };

type Environment = { [name: string]: string };

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
    const timer = setTimeout(() => child.kill("SIGKILL"), options.limitMs ?? 600_000);
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

/** The world of the test: a folder, a clone of the released commit, and a server of the releases. */
class Site {
  readonly folder: string = mkdtempSync(join(tmpdir(), "waft-e2e-"));
  readonly out: string = join(this.folder, "site");
  readonly clone: string = join(this.folder, "clone");
  readonly #key: string = join(this.folder, "key.pem");
  readonly #server: Server;
  /** A module that adds. */
  readonly module: string = join(this.folder, "add.wat");
  nightly = "";
  canary = "";

  private constructor(server: Server) {
    this.#server = server;
    writeFileSync(this.#key, releaseKey().pem);
    writeFileSync(
      this.module,
      '(module (func (export "add") (param i32 i32) (result i32) (i32.add (local.get 0) (local.get 1))))',
    );
    cloneAt(COMMIT, this.clone);
  }

  static async open(): Promise<Site> {
    const server = createServer((request, response) => {
      const path = join(site.out, decodeURIComponent(request.url ?? "/"));
      if (path.includes("..") || !existsSync(path) || !statSync(path).isFile()) {
        response.writeHead(404).end();
        return;
      }
      response.writeHead(200, { "content-length": statSync(path).size });
      createReadStream(path).pipe(response);
    });
    const site = new Site(server);
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    return site;
  }

  get base(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  /** A new home directory, whose name contains a space. */
  home(): string {
    return mkdtempSync(join(this.folder, "home "));
  }

  /** Writes a release of the clone to `out`; returns its version. */
  release(channel: string, out = this.out): string {
    const options = {
      commit: COMMIT,
      out,
      key: this.#key,
      channel,
      base: this.base,
      platform: platformName(),
      now: "2026-11-01T00:00:00Z",
      "expire-days": "36500",
    };
    const words = Object.entries(options).flatMap(([name, value]) => [`--${name}`, value]);
    const script = join(this.clone, "scripts/package/release.ts");
    const args = ["run", "-A", "--no-check", script, ...words, "--own-deno", "--no-packages", "--no-singles"];
    const { status, stdout, stderr } = spawnSync(process.execPath, args, { encoding: "utf8" });
    assert.equal(status, 0, stderr);
    return stdout.trim();
  }

  /** The installer of the canary release with the address of a repository. */
  scriptWith(repository: string): string {
    const file = join(this.folder, "install.sh");
    const text = readFileSync(join(this.out, "releases", this.canary, "install.sh"), "utf8");
    assert.ok(text.includes("RELEASE_REPOSITORY=''"));
    writeFileSync(file, text.replace("RELEASE_REPOSITORY=''", `RELEASE_REPOSITORY='${repository}'`));
    return file;
  }

  async close(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
    rmSync(this.folder, { recursive: true, force: true });
  }
}

/** Two releases; the same commit gives the same bytes. */
function makeReleases(site: Site): void {
  site.nightly = site.release("nightly");
  const again = join(site.folder, "again");
  assert.equal(site.release("nightly", again), site.nightly);
  for (
    const name of [
      "install.sh",
      "releases/index.json",
      "releases/index.json.sig",
      `releases/${site.nightly}/SHA256SUMS`,
    ]
  ) {
    assert.equal(readFileSync(join(again, name), "utf8"), readFileSync(join(site.out, name), "utf8"), name);
  }
  rmSync(again, { recursive: true });
  site.canary = site.release("canary");
  const index = JSON.parse(readFileSync(join(site.out, "releases", "index.json"), "utf8")) as ReleaseIndex;
  assert.equal(index.sequence, 2);
  assert.deepEqual(index.channels, { nightly: site.nightly, canary: site.canary });
}

/** Installs under a shell, in a terminal; uses the versions; uninstalls. */
async function liveUnder(site: Site, shell: string, withHome: boolean): Promise<void> {
  const { nightly, canary, module } = site;
  const home = site.home();
  const scratch = join(home, "tmp");
  mkdirSync(scratch);
  const env: Environment = {
    ...CLEAN,
    HOME: home,
    TMPDIR: scratch,
    SHELL: `/bin/${shell === "busybox sh" ? "sh" : shell}`,
    ...(withHome ? { WAFT_HOME: join(home, "w") } : {}),
  };
  const installed = await inTerminal(`curl -fsSL ${site.base}/install.sh | ${shell}`, env, [
    [/Directory of the command \[.*\]: /, ""],
    [/Add them\? \[Y\/n\] /, "y"],
  ]);
  assert.equal(installed.status, 0, installed.text);
  assert.match(installed.text, /installed waft .*is on the PATH of new shells/s);
  assert.deepEqual(readdirSync(scratch), []);
  const fresh = (command: string) => inNewShell(shell, command, env);
  const bin = withHome ? join(home, "w", "bin") : join(home, ".waft", "bin");
  assert.equal(await fresh("command -v waft"), `${join(bin, "waft")}\n`);
  assert.equal(await fresh("waft --version"), `${canary}\n`);
  assert.match(await fresh("waft version install nightly"), new RegExp(`installed ${nightly.replaceAll(".", "\\.")}`));
  assert.equal(await fresh(`waft run --invoke add "${module}" 2 3`), "5\n");
  // As in the other forms of the command.
  assert.equal(await fresh(`waft "${module}" 2 3`), "5\n");
  assert.match(await fresh("waft help plugin grant"), /^Usage: waft plugin grant /);
  assert.equal(await fresh("waft -V"), await fresh("waft --version"));
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
}

/** Runs a command in a new shell, which reads its start-up file; returns its output. */
async function inNewShell(shell: string, command: string, env: Environment): Promise<string> {
  const start = shell === "bash" ? ".bashrc" : shell === "zsh" ? ".zshenv" : ".profile";
  const [program, ...args] = shell.split(" ");
  const line = `${shell === "zsh" ? "" : `. "$HOME/${start}"; `}${command}`;
  const { stdout, stderr, status } = await finish(program!, [...args, "-c", line], { env, cwd: env["HOME"] });
  assert.equal(status, 0, `${command}: ${stdout}${stderr}`);
  return stdout;
}

/** The installed waft passes the tests of the sources: the README's first command, the specification's suite. */
async function testInstalled(site: Site): Promise<void> {
  const home = site.home();
  const env = { ...CLEAN, HOME: home, SHELL: "/bin/sh" };
  const installed = await finish("sh", ["-c", `curl -fsSL ${site.base}/install.sh | sh -s -- --yes`], { env });
  assert.equal(installed.status, 0, installed.stderr);
  assert.match(installed.stderr, /checked: the SHA-256 of .*, and that the release's key .* signed it/);
  const waft = join(home, ".waft", "bin", "waft");
  await runFirstCommand(waft, site.clone, env);
  await runSuite(waft, env);
  await servedBy(waft, site, env, (address) => installNightlyFrom(address, site, env));
  await finish(waft, ["self", "uninstall", "--yes"], { env });
  assert.deepEqual(readdirSync(home), []);
}

async function runFirstCommand(waft: string, clone: string, env: Environment): Promise<void> {
  const readme = readFileSync(join(clone, "README.md"), "utf8");
  const first = /^(?:waft|.*\bcli\.ts) (run \S.*?) +# prints (\S+)$/m.exec(readme);
  assert.ok(first !== null, "the README begins with a command and its output");
  const { stdout, stderr } = await finish(waft, first[1].split(" "), { env, cwd: clone });
  assert.equal(stdout, `${first[2]}\n`, stderr);
}

async function runSuite(waft: string, env: Environment): Promise<void> {
  if (!existsSync(TESTSUITE)) return console.log(`the specification's suite is left out${NEEDS_TESTSUITE}`);
  const ran = await finish(waft, ["wast", TESTSUITE], { env, limitMs: 300_000 });
  const [, passed, failed] = /^([0-9]+) passed, ([0-9]+) failed, 0 skipped$/m.exec(ran.stdout) ?? [];
  assert.equal(failed, "0", ran.stdout.slice(-2000) + ran.stderr);
  assert.ok(Number(passed) > 60_000, `${passed} assertions`);
  assert.equal(ran.status, 0);
}

/** Lets an installed waft serve the releases as a registry. */
async function servedBy(
  waft: string,
  site: Site,
  env: Environment,
  work: (address: string) => Promise<void>,
): Promise<void> {
  const args = ["registry", "--port", "0", "--data", join(site.folder, "registry"), "--releases", site.out];
  const child = spawn(waft, args, { env, stdio: ["ignore", "pipe", "pipe"] });
  const closed = new Promise((resolve) => child.on("close", resolve));
  let said = "";
  try {
    const address = await new Promise<string>((resolve, reject) => {
      const listen = (chunk: unknown): void => {
        said += String(chunk);
        const found = /^registry: (http:\S+)/m.exec(said)?.[1];
        if (found !== undefined) resolve(found);
      };
      child.stdout.on("data", listen);
      child.stderr.on("data", listen);
      child.on("close", () => reject(new Error(`the registry ended: ${said}`)));
    });
    await work(address);
  } finally {
    child.kill("SIGTERM");
    await closed;
  }
}

async function installNightlyFrom(address: string, site: Site, env: Environment): Promise<void> {
  const home = site.home();
  const command = `curl -fsSL ${address}/install.sh | sh -s -- --yes --base ${address} --version nightly`;
  const more = await finish("sh", ["-c", command], { env: { ...env, HOME: home } });
  assert.equal(more.status, 0, more.stderr);
  const version = await finish(join(home, ".waft", "bin", "waft"), ["--version"], { env: { ...env, HOME: home } });
  assert.equal(version.stdout, `${site.nightly}\n`, "the version that --version named is the active one");
}

/** The system's programs, and the Deno that runs the tests where the system has none: builds from source need one. */
const WITH_DENO = `${CLEAN.PATH}:${dirname(process.execPath)}`;

/** Installs from source with a script and uninstalls; returns the script's output. */
async function fromSource(
  site: Site,
  command: string,
  path: string,
  more?: (waft: string, env: Environment) => Promise<void>,
): Promise<string> {
  const home = site.home();
  const DENO_DIR = process.env["DENO_DIR"] ?? join(process.env["HOME"]!, ".cache", "deno");
  const env = { ...process.env, ...CLEAN, PATH: path, HOME: home, DENO_DIR, SHELL: "/bin/sh" };
  const { status, stderr } = await finish("sh", ["-c", command], { env, limitMs: 180_000 });
  assert.equal(status, 0, stderr);
  const waft = join(home, ".waft", "bin", "waft");
  const ran = await finish(waft, ["run", "--invoke", "add", site.module, "2", "3"], { env });
  assert.equal(ran.stdout, "5\n", ran.stderr);
  await more?.(waft, { ...CLEAN, HOME: home });
  await finish(waft, ["self", "uninstall", "--yes"], { env });
  assert.deepEqual(readdirSync(home).filter((name) => name !== ".npm"), []);
  return stderr;
}

/** From source, by a clone at the release's commit and no other. */
async function installFromClone(site: Site, repository: string): Promise<void> {
  assert.equal(spawnSync("git", ["clone", "--quiet", "--bare", site.clone, repository]).status, 0);
  const command = `sh '${site.scriptWith(repository)}' --yes --from-source`;
  const said = await fromSource(site, command, WITH_DENO, async (waft, env) => {
    assert.equal((await finish(waft, ["--version"], { env })).stdout, `${site.canary}\n`);
    const { stdout, stderr } = await finish(waft, ["version", "install", "nightly"], { env });
    assert.match(stdout, /installed/, `it trusts the release's keys: ${stderr}`);
  });
  assert.match(said, /cloning .*checked: the clone is at commit [0-9a-f]{40}, which this script names/s);
  const missing = `sh '${site.scriptWith(join(site.folder, "nowhere"))}' --yes --from-source`;
  const away = await finish("sh", ["-c", missing], {
    env: { ...process.env, ...CLEAN, PATH: WITH_DENO, HOME: site.folder },
  });
  assert.equal(away.status, 1);
  assert.match(away.stderr, /nowhere cannot be cloned\n.*nothing was changed/);
}

/** From source, by the archive, with the system's programs except Git. */
async function installFromArchive(site: Site, repository: string): Promise<void> {
  const tools = join(site.folder, "tools");
  mkdirSync(tools);
  for (const directory of ["/bin", "/usr/bin", "/usr/local/bin"]) {
    for (const name of readdirSync(directory)) {
      if (name.startsWith("git") || existsSync(join(tools, name))) continue;
      try {
        symlinkSync(join(directory, name), join(tools, name));
      } catch {
        // A dangling link of the same name.
      }
    }
  }
  if (!existsSync(join(tools, "deno"))) symlinkSync(process.execPath, join(tools, "deno"));
  const said = await fromSource(site, `sh '${site.scriptWith(repository)}' --yes --from-source`, tools);
  assert.match(said, /downloading .*-source\.tar\.gz.*checked: the SHA-256 of waft-.*-source\.tar\.gz/s);
  assert.ok(!said.includes("cloning"));
}

/** From source, by a checkout, in which nothing changes. */
async function installFromCheckout(site: Site, repository: string): Promise<void> {
  const checkout = join(site.folder, "checkout");
  assert.equal(spawnSync("git", ["clone", "--quiet", repository, checkout]).status, 0);
  const command = `sh '${checkout}/installer/install.sh' --yes --from-source`;
  const said = await fromSource(site, command, WITH_DENO, async (waft, env) => {
    const { stderr } = await finish(waft, ["version", "install", "nightly"], { env });
    assert.match(stderr, /signature\.keys: this build of waft has no release keys/);
  });
  assert.match(said, /taking the sources of /);
  const status = spawnSync("git", ["status", "--short", "--ignored"], { cwd: checkout, encoding: "utf8" });
  assert.equal(status.stdout, "");
}

Deno.test({
  name: WHOLE
    ? "end to end: from a release to an uninstallation that leaves nothing"
    : "end to end (ignored: builds real releases; run `deno task test:installer`)",
  ignore: !WHOLE || Deno.build.os !== "linux" || !["script", "curl"].every(has),
  async fn(t) {
    const site = await Site.open();
    try {
      if (!await t.step("two releases; the same commit gives the same bytes", () => makeReleases(site))) return;
      for (const shell of ["dash", "bash", "zsh", "busybox sh"].filter((shell) => has(shell.split(" ")[0]))) {
        await t.step(shell, () => liveUnder(site, shell, false));
        if (shell === "bash") await t.step("bash, WAFT_HOME", () => liveUnder(site, shell, true));
      }
      await t.step(
        "the installed waft: the README's first command, the specification's suite",
        () => testInstalled(site),
      );
      const repository = join(site.folder, "repository.git");
      await t.step("from source: a clone where Git is", () => installFromClone(site, repository));
      await t.step("from source: the archive where Git is not", () => installFromArchive(site, repository));
      await t.step("from source: a checkout", () => installFromCheckout(site, repository));
    } finally {
      await site.close();
    }
  },
});
