/**
 * Exchanges programs with the clients of others over a real OCI registry: `deno task compare:oci`. In: Debian's
 * `docker-registry` on loopback; `oras`, `cosign` and `wkg`, which `--install` builds into .cache/oci from the Go
 * module proxy and crates.io. Out: one line per direction; status 1 for one that fails. A client that is not installed
 * is reported and left out.
 */
import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import process from "node:process";
import { fileURLToPath } from "node:url";
import { readTaskLine } from "./task_options.ts";

const task = {
  name: "task compare:oci",
  about: "Exchanges programs with oras, wkg and cosign over docker-registry.",
  options: { install: { help: "build oras, cosign and wkg first, which takes long" } },
} as const;
const { values } = readTaskLine(task);

const ROOT = fileURLToPath(new URL("..", import.meta.url));
const CACHE = process.env.WAFT_OCI_CLIENTS ?? join(ROOT, ".cache", "oci");
const WAFT = [process.execPath, "run", "-A", "--no-check", join(ROOT, "cli.ts")];
const HELLO = join(ROOT, "tests", "component", "fixtures", "hello.wasm");
const TYPE = "application/wasm";
/** A line of htpasswd: ada, with the password "engine". */
const ACCOUNT = "ada:$2y$05$abcdefghijklmnopqrstuuUUvddHRmhXjg7IYl72Nv1THBPI9/EJy";

/** The clients: how each is built, and the version that was tried. */
const CLIENTS = {
  oras: ["go", "install", "oras.land/oras/cmd/oras@v1.3.6"],
  cosign: ["go", "install", "github.com/sigstore/cosign/v2/cmd/cosign@v2.6.5"],
  wkg: ["cargo", "install", "wkg@0.16.1", "--locked", "--root", CACHE],
} as const;
type Client = keyof typeof CLIENTS;

const folder = mkdtempSync(join(tmpdir(), "waft-oci-"));
const counts = { good: 0, absent: 0, failed: 0 };

const pathOf = (client: Client): string => join(CACHE, "bin", client);

/** A failed comparison. */
class Difference extends Error {}

function install(): void {
  mkdirSync(join(CACHE, "bin"), { recursive: true });
  for (const [client, [program, ...args]] of Object.entries(CLIENTS)) {
    if (existsSync(pathOf(client as Client))) continue;
    console.log(`building ${client}: ${program} ${args.join(" ")}`);
    const env = { ...process.env, GOBIN: join(CACHE, "bin") };
    const { status } = spawnSync(program, args, { stdio: ["ignore", "ignore", "inherit"], env });
    if (status !== 0) console.log(`${client} could not be built (status ${status})`);
  }
}

interface Ran {
  readonly code: number | null;
  readonly out: string;
  readonly err: string;
}

/** Runs a program in `folder`, with Docker's configuration and waft's directories there. */
function tryRun(program: string, args: readonly string[], machine = "machine"): Ran {
  const env = {
    ...process.env,
    DOCKER_CONFIG: join(folder, "docker"),
    WAFT_HOME: join(folder, machine),
    COSIGN_PASSWORD: "",
    XDG_CONFIG_HOME: join(folder, "config"),
    XDG_CACHE_HOME: join(folder, "cache"),
  };
  const { status, stdout, stderr } = spawnSync(program, args, { cwd: folder, encoding: "utf8", env });
  return { code: status, out: stdout ?? "", err: stderr ?? "" };
}

function run(program: string, args: readonly string[], machine?: string): string {
  const { code, out, err } = tryRun(program, args, machine);
  if (code !== 0) throw new Difference(`${basename(program)} ${args.join(" ")}: status ${code}: ${out}${err}`);
  return out.trim();
}

const waft = (...args: string[]): string => run(WAFT[0], [...WAFT.slice(1), ...args]);
const client = (name: Client, ...args: string[]): string => run(pathOf(name), args);

function equal(a: unknown, b: unknown, what: string): void {
  if (a !== b) throw new Difference(`${what}: ${String(a)} is not ${String(b)}`);
}

/** waft refuses with one error of this form, and caches nothing. */
function refused(args: readonly string[], pattern: RegExp): void {
  rmSync(join(folder, "fresh"), { recursive: true, force: true });
  const { code, out, err } = tryRun(WAFT[0], [...WAFT.slice(1), ...args], "fresh");
  if (code === 0 || !pattern.test(err) || out !== "") throw new Difference(`${args.join(" ")}: ${code} ${out}${err}`);
  const blobs = join(folder, "fresh", "cache", "blobs", "sha256");
  equal(existsSync(blobs) ? readdirSync(blobs).length : 0, 0, "files in the cache");
}

const digestOf = (path: string): string => createHash("sha256").update(readFileSync(path)).digest("hex");
const digestIn = (text: string): string => /sha256:[0-9a-f]{64}/.exec(text)?.[0] ?? `no digest in ${text}`;

/** Runs one direction, and prints the outcome. */
function direction(name: string, needs: readonly Client[], work: () => void): void {
  const missing = needs.filter((needed) => !existsSync(pathOf(needed)));
  if (missing.length > 0) {
    counts.absent++;
    console.log(`absent ${name}: ${missing.join(", ")} (--install)`);
    return;
  }
  try {
    work();
    counts.good++;
    console.log(`ok     ${name}`);
  } catch (error) {
    if (!(error instanceof Difference)) throw error;
    counts.failed++;
    console.log(`FAILED ${name}: ${error.message.slice(0, 2000)}`);
  }
}

async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  await new Promise((resolve) => server.close(resolve));
  return typeof address === "object" && address !== null ? address.port : 0;
}

/** Starts docker-registry, with or without accounts. Returns the host, and where it keeps its data. */
async function startRegistry(
  name: string,
  isPrivate: boolean,
): Promise<{ readonly host: string; readonly data: string; readonly child: ChildProcess }> {
  const port = await freePort();
  const [data, config, accounts] = ["data", "yml", "htpasswd"].map((kind) => join(folder, `${name}.${kind}`));
  writeFileSync(accounts, `${ACCOUNT}\n`);
  const auth = isPrivate ? `auth:\n  htpasswd:\n    realm: test\n    path: ${accounts}\n` : "";
  writeFileSync(
    config,
    `version: 0.1\nlog:\n  level: error\nstorage:\n  filesystem:\n    rootdirectory: ${data}\n` +
      `http:\n  addr: 127.0.0.1:${port}\n${auth}`,
  );
  const child = spawn("docker-registry", ["serve", config], { stdio: "ignore" });
  const host = `127.0.0.1:${port}`;
  for (let i = 0;; i++) {
    const response = await fetch(`http://${host}/v2/`).catch(() => undefined);
    await response?.body?.cancel();
    if (response !== undefined) return { host, data, child };
    if (i === 200) throw new Error("docker-registry does not answer");
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

function exchange(host: string): void {
  const reference = (name: string): string => `${host}/demo/${name}`;
  const oci = (name: string): string => `oci://${reference(name)}`;
  const HELLO_DIGEST = digestOf(HELLO);
  direction("waft pushes, oras pulls", ["oras"], () => {
    const pushed = waft("push", oci("by-waft:1"), HELLO);
    equal(client("oras", "resolve", "--plain-http", reference("by-waft:1")), digestIn(pushed), "digest");
    client("oras", "pull", "--plain-http", "-o", "from-oras", reference("by-waft:1"));
    const blob = `${reference("by-waft")}@sha256:${HELLO_DIGEST}`;
    client("oras", "blob", "fetch", "--plain-http", "-o", "blob.wasm", blob);
    equal(digestOf(join(folder, "blob.wasm")), HELLO_DIGEST, "bytes");
  });
  direction("oras pushes, waft pulls and runs", ["oras"], () => {
    writeFileSync(join(folder, "hello.wasm"), readFileSync(HELLO));
    const pushed = client("oras", "push", "--plain-http", reference("by-oras:1"), `hello.wasm:${TYPE}`);
    equal(digestIn(waft("pull", oci("by-oras:1"), "-o", "pulled.wasm")), digestIn(pushed), "digest");
    equal(digestOf(join(folder, "pulled.wasm")), HELLO_DIGEST, "bytes");
    equal(waft("run", oci("by-oras:1")), "hello", "output");
  });
  direction("oras copies what waft pushed", ["oras"], () => {
    const pushed = waft("push", oci("by-waft:2"), HELLO);
    const plain = ["--from-plain-http", "--to-plain-http"];
    client("oras", "cp", ...plain, reference("by-waft:2"), reference("copied:2"));
    equal(digestIn(waft("pull", oci("copied:2"), "-o", "copied.wasm")), digestIn(pushed), "digest");
  });
  direction("waft pushes, wkg pulls", ["wkg"], () => {
    waft("push", oci("by-waft:3"), HELLO);
    client("wkg", "oci", "pull", "--insecure", host, "--output", "from-wkg.wasm", reference("by-waft:3"));
    equal(digestOf(join(folder, "from-wkg.wasm")), HELLO_DIGEST, "bytes");
  });
  direction("wkg pushes, waft pulls and runs", ["wkg"], () => {
    client("wkg", "oci", "push", "--insecure", host, reference("by-wkg:1"), HELLO);
    waft("pull", oci("by-wkg:1"), "-o", "pulled-wkg.wasm");
    equal(digestOf(join(folder, "pulled-wkg.wasm")), HELLO_DIGEST, "bytes");
    equal(waft("run", oci("by-wkg:1")), "hello", "output");
  });
  direction("wkg pushes, oras pulls", ["wkg", "oras"], () => {
    client("oras", "resolve", "--plain-http", reference("by-wkg:1"));
    client("oras", "pull", "--plain-http", "-o", "oras-wkg", reference("by-wkg:1"));
    const blob = `${reference("by-wkg")}@sha256:${HELLO_DIGEST}`;
    client("oras", "blob", "fetch", "--plain-http", "-o", "oras-wkg.wasm", blob);
    equal(digestOf(join(folder, "oras-wkg.wasm")), HELLO_DIGEST, "bytes");
  });
  // wkg takes no artifact with the empty configuration that oras writes by itself; waft does.
  direction("oras pushes with the configuration of wkg, wkg and waft pull", ["wkg", "oras"], () => {
    client("oras", "manifest", "fetch-config", "--plain-http", "-o", "config.json", reference("by-wkg:1"));
    const config = "config.json:application/vnd.wasm.config.v0+json";
    const pushed = client(
      "oras",
      "push",
      "--plain-http",
      "--config",
      config,
      reference("like-wkg:1"),
      `hello.wasm:${TYPE}`,
    );
    client("wkg", "oci", "pull", "--insecure", host, "--output", "like-wkg.wasm", reference("like-wkg:1"));
    equal(digestOf(join(folder, "like-wkg.wasm")), HELLO_DIGEST, "bytes");
    equal(digestIn(waft("pull", oci("like-wkg:1"), "-o", "like-waft.wasm")), digestIn(pushed), "digest");
    equal(digestOf(join(folder, "like-waft.wasm")), HELLO_DIGEST, "bytes");
  });
  direction("cosign signs what waft pushed, waft checks it", ["cosign"], () => {
    const digest = digestIn(waft("push", oci("signed:1"), HELLO));
    refused(["pull", "--signed-by", HELLO, oci("signed:1"), "-o", "x.wasm"], /no public key/);
    client("cosign", "generate-key-pair");
    const key = join(folder, "cosign.pub");
    refused(["pull", "--signed-by", key, oci("signed:1"), "-o", "x.wasm"], /sign/);
    const flags = ["--key", "cosign.key", "--tlog-upload=false", "--new-bundle-format=false", "--yes"];
    client("cosign", "sign", ...flags, `${reference("signed")}@${digest}`);
    waft("pull", "--signed-by", key, oci("signed:1"), "-o", "signed.wasm");
    equal(digestOf(join(folder, "signed.wasm")), HELLO_DIGEST, "bytes");
    client("cosign", "verify", "--key", key, "--insecure-ignore-tlog=true", `${reference("signed")}@${digest}`);
    rmSync(join(folder, "cosign.key"));
    rmSync(key);
    client("cosign", "generate-key-pair");
    refused(["pull", "--signed-by", key, oci("signed:1"), "-o", "x.wasm"], /sign/);
  });
}

function faults(host: string, data: string): void {
  const oci = (name: string): string => `oci://${host}/demo/${name}`;
  direction("an unknown digest, an unknown tag", [], () => {
    waft("push", oci("faults:1"), HELLO);
    refused(["pull", `${oci("faults")}@sha256:${"0".repeat(64)}`, "-o", "x.wasm"], /404|unknown|no /);
    refused(["pull", oci("faults:9"), "-o", "x.wasm"], /404|unknown|no /);
  });
  direction("another type", ["oras"], () => {
    writeFileSync(join(folder, "text.txt"), "text");
    client("oras", "push", "--plain-http", `${host}/demo/text:1`, "text.txt:text/plain");
    refused(["pull", oci("text:1"), "-o", "x.wasm"], /text\/plain|type/);
  });
  direction("a blob that is cut in the registry's storage", [], () => {
    const hex = digestOf(HELLO);
    const blob = join(data, "docker", "registry", "v2", "blobs", "sha256", hex.slice(0, 2), hex, "data");
    const bytes = readFileSync(blob);
    writeFileSync(blob, bytes.subarray(0, statSync(blob).size / 2));
    refused(["pull", oci("faults:1"), "-o", "x.wasm"], /digest|bytes|size|short/);
    writeFileSync(blob, new Uint8Array(bytes.length));
    refused(["pull", oci("faults:1"), "-o", "x.wasm"], /digest/);
    writeFileSync(blob, bytes);
    waft("pull", oci("faults:1"), "-o", "x.wasm");
  });
}

function credentials(host: string): void {
  const oci = `oci://${host}/demo/private:1`;
  const store = (password: string): void => {
    const auth = Buffer.from(`ada:${password}`).toString("base64");
    writeFileSync(join(folder, "docker", "config.json"), JSON.stringify({ auths: { [host]: { auth } } }));
  };
  direction("credentials: none, expired, good", [], () => {
    refused(["push", oci, HELLO], /401|denies/);
    store("expired");
    refused(["push", oci, HELLO], /401|denies/);
    store("engine");
    waft("push", oci, HELLO);
    waft("pull", oci, "-o", "private.wasm");
    store("expired");
    refused(["pull", oci, "-o", "x.wasm"], /401|denies/);
  });
  direction("credentials that oras stored", ["oras"], () => {
    rmSync(join(folder, "docker", "config.json"));
    client("oras", "login", "--plain-http", "-u", "ada", "-p", "engine", host);
    waft("pull", oci, "-o", "private.wasm");
  });
}

if (values.install === true) install();
mkdirSync(join(folder, "docker"));
const registries: ChildProcess[] = [];
try {
  const open = await startRegistry("open", false);
  registries.push(open.child);
  exchange(open.host);
  faults(open.host, open.data);
  const closed = await startRegistry("closed", true);
  registries.push(closed.child);
  credentials(closed.host);
} finally {
  for (const child of registries) child.kill();
  rmSync(folder, { recursive: true, force: true });
}
console.log(`${counts.good} good, ${counts.absent} absent, ${counts.failed} failed`);
process.exitCode = counts.failed > 0 ? 1 : 0;
