/**
 * Runs the specification suite on 64-bit Arm: `deno task test:arm64 [FILTER…]`, in both bounds modes. On an arm64 machine with this very
 * Deno; elsewhere with the arm64 Deno of npm under qemu (Debian's `qemu-user` and cross libraries), both of which are
 * installed when they are missing. Emulation is slow: filters (parts of file names) keep a run short.
 */
import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import process from "node:process";

const PACKAGES = ["qemu-user", "libc6-arm64-cross", "libgcc-s1-arm64-cross", "libstdc++6-arm64-cross"];
const EMULATOR = "qemu-aarch64";
const LIBRARIES = "/usr/aarch64-linux-gnu";
const NPM_NAME = "@deno/linux-arm64-glibc";
const NPM_VERSION = "2.9.5";

function run(command: string, args: string[], env: Record<string, string> = {}): number {
  const { code } = new Deno.Command(command, { args, env, stdin: "null", stdout: "inherit", stderr: "inherit" })
    .outputSync();
  return code;
}

function fail(message: string): never {
  console.error(`error: ${message}`);
  process.exit(1);
}

function isOnPath(program: string): boolean {
  return (process.env["PATH"] ?? "").split(":").some((folder) => existsSync(join(folder, program)));
}

function installEmulator(): void {
  if (isOnPath(EMULATOR) && existsSync(join(LIBRARIES, "lib"))) return;
  const root = process.getuid?.() === 0;
  if (!isOnPath("apt-get")) fail(`Install ${PACKAGES.join(", ")} (or what your system calls them) and run this again`);
  const command = root ? "apt-get" : "sudo";
  if (run(command, [...(root ? [] : ["apt-get"]), "install", "-y", ...PACKAGES]) !== 0) {
    fail(`Cannot install ${PACKAGES.join(", ")}`);
  }
}

/** Path of the arm64 Deno in the npm cache, which it is put into when it is not there. */
function arm64Deno(): string {
  const info = JSON.parse(
    new TextDecoder().decode(new Deno.Command(Deno.execPath(), { args: ["info", "--json"] }).outputSync().stdout),
  ) as { npmCache: string };
  const find = () => {
    if (!existsSync(info.npmCache)) return undefined;
    return readdirSync(info.npmCache)
      .map((registry) => join(info.npmCache, registry, NPM_NAME, NPM_VERSION, "deno"))
      .find((path) => existsSync(path));
  };
  const known = find();
  if (known !== undefined) return known;
  // Outside the project, whose lockfile has no business with it.
  const folder = Deno.makeTempDirSync();
  const args = ["cache", "--no-config", "--no-lock", `npm:${NPM_NAME}@${NPM_VERSION}`];
  const { code } = new Deno.Command(Deno.execPath(), { args, cwd: folder, stdout: "inherit", stderr: "inherit" })
    .outputSync();
  Deno.removeSync(folder, { recursive: true });
  return (code === 0 ? find() : undefined) ?? fail(`Cannot fetch ${NPM_NAME} ${NPM_VERSION} from npm`);
}

const spec = ["run", "-A", "--no-check", "scripts/spec.ts", ...process.argv.slice(2)];
if (Deno.build.arch === "aarch64") process.exit(run(Deno.execPath(), spec));
if (Deno.build.os !== "linux") fail("Emulating arm64 needs Linux");
installEmulator();
process.exit(run(EMULATOR, [arm64Deno(), ...spec], { QEMU_LD_PREFIX: LIBRARIES }));
