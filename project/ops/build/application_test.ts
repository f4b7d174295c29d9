/**
 * Applications: they are written, read back, replaced and refused. In: small files in place of runtimes.
 */
import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, truncateSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { LACKS_POSIX_FILES } from "../../../tests/support/posix_files.ts";
import { type Application, readApplication } from "./application.ts";
import { runtimePlatform } from "./single_runtime.ts";
import { writeApplication } from "./write_application.ts";

function inFolder(action: (folder: string) => void): void {
  const folder = mkdtempSync(join(tmpdir(), "waft-application-"));
  try {
    action(folder);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

const ONE: Application = {
  inputs: { form: "module", invoke: "größe", dir: ["a::/b"], env: ["A=1"] },
  program: Uint8Array.of(1, 2, 3),
};

Deno.test("an application contains its runtime and its program", () =>
  inFolder((folder) => {
    const [runtime, path] = [join(folder, "runtime"), join(folder, "app")];
    writeFileSync(runtime, "#!runtime waft-application");
    assert.equal(readApplication(runtime), undefined, "the magic alone is a runtime's");
    writeApplication(path, runtime, ONE);
    assert.deepEqual(readApplication(path), ONE);
    assert.equal(readFileSync(path, "latin1").startsWith("#!runtime waft-application"), true);
    if (!LACKS_POSIX_FILES) assert.equal(statSync(path).mode & 0o777, 0o777 & ~process.umask());
    assert.deepEqual(readdirSync(folder).sort(), ["app", "runtime"]);
  }));

Deno.test({
  name: "an application has the permissions that the umask leaves to new programs",
  ignore: LACKS_POSIX_FILES,
  fn: () =>
    inFolder((folder) => {
      const [runtime, path] = [join(folder, "runtime"), join(folder, "app")];
      writeFileSync(runtime, "#!runtime");
      for (const umask of [0o022, 0o077]) {
        const before = process.umask(umask);
        try {
          writeApplication(path, runtime, ONE);
        } finally {
          process.umask(before);
        }
        assert.equal(statSync(path).mode & 0o777, 0o777 & ~umask);
      }
    }),
});

Deno.test("an application as the runtime of another one loses its program", () =>
  inFolder((folder) => {
    const [runtime, one, two] = ["runtime", "one", "two"].map((name) => join(folder, name));
    writeFileSync(runtime!, "#!runtime");
    writeApplication(one!, runtime!, ONE);
    writeApplication(two!, runtime!, { ...ONE, program: new Uint8Array(100_000) });
    writeApplication(two!, two!, ONE);
    assert.deepEqual(readFileSync(two!), readFileSync(one!));
  }));

Deno.test("a damaged application is refused, and a failed write leaves no file", () =>
  inFolder((folder) => {
    const [runtime, path] = [join(folder, "runtime"), join(folder, "app")];
    writeFileSync(runtime, "");
    writeApplication(path, runtime, ONE);
    const bytes = readFileSync(path);
    bytes.writeUInt32LE(0xffffffff, bytes.length - 28);
    writeFileSync(path, bytes);
    assert.throws(() => readApplication(path), /damaged: its parts are longer than the file/);
    truncateSync(path, 20);
    assert.equal(readApplication(path), undefined);
    assert.throws(() => writeApplication(join(folder, "none", "app"), runtime, ONE), /ENOENT|NotFound/);
    assert.throws(() => writeApplication(folder, runtime, ONE));
    assert.deepEqual(readdirSync(folder).sort(), ["app", "runtime"]);
  }));

Deno.test("an application with any changed byte of its inputs and lengths is read or refused with one error", () =>
  inFolder((folder) => {
    const [runtime, path] = [join(folder, "runtime"), join(folder, "app")];
    writeFileSync(runtime, "");
    writeApplication(path, runtime, ONE);
    const bytes = readFileSync(path);
    let refused = 0;
    for (let bit = 0; bit < 8 * (bytes.length - 16); bit++) {
      const changed = Buffer.from(bytes);
      changed[bit >> 3] ^= 1 << (bit & 7);
      writeFileSync(path, changed);
      try {
        readApplication(path);
      } catch (error) {
        assert.match(String(error), /^Error: the application is damaged: [^\n]+; build or copy it again$/);
        refused++;
      }
    }
    assert.ok(refused > 300, `${refused} refused`);
  }));

/** An executable of `bytes` bytes whose format says where it ends: a table of sections, a segment, or a section. */
const ENDING: Readonly<Record<string, (bytes: number) => Buffer>> = {
  elf(bytes) {
    const head = Buffer.alloc(bytes);
    head.write("7f454c46", "hex");
    head.writeUInt32LE(bytes - 128, 40);
    head.writeUInt16LE(64, 58);
    head.writeUInt16LE(2, 60);
    return head;
  },
  "mach-o"(bytes) {
    const head = Buffer.alloc(bytes);
    for (const [at, value] of [[0, 0xfeedfacf], [16, 2], [32, 2], [36, 16], [48, 0x19], [52, 72]] as const) {
      head.writeUInt32LE(value, at);
    }
    head.writeUInt32LE(100, 48 + 40);
    head.writeUInt32LE(bytes - 100, 48 + 48);
    return head;
  },
  pe(bytes) {
    const head = Buffer.alloc(bytes);
    head.write("MZ");
    head.writeUInt32LE(64, 60);
    head.write("PE", 64);
    head.writeUInt16LE(1, 70);
    head.writeUInt16LE(240, 84);
    head.writeUInt32LE(bytes - 40, 64 + 24 + 240 + 16);
    head.writeUInt32LE(40, 64 + 24 + 240 + 20);
    return head;
  },
};

for (const [format, executable] of Object.entries(ENDING)) {
  Deno.test(`an application that is cut off or damaged at its end does not start as waft (${format})`, () =>
    inFolder((folder) => {
      const [runtime, path] = [join(folder, "runtime"), join(folder, "app")];
      writeFileSync(runtime, executable(1000));
      assert.equal(readApplication(runtime), undefined);
      writeApplication(path, runtime, ONE);
      assert.deepEqual(readApplication(path), ONE);
      const bytes = readFileSync(path);
      for (let length = 1001; length < bytes.length; length++) {
        writeFileSync(path, bytes.subarray(0, length));
        assert.throws(
          () => readApplication(path),
          /damaged: it is cut off, or its last bytes have changed/,
          `${length}`,
        );
      }
      for (let bit = 8 * (bytes.length - 28); bit < 8 * bytes.length; bit++) {
        const changed = Buffer.from(bytes);
        changed[bit >> 3] ^= 1 << (bit & 7);
        writeFileSync(path, changed);
        assert.throws(() => readApplication(path), /the application is damaged/, `bit ${bit}`);
        assert.throws(() => writeApplication(join(folder, "other"), path, ONE), /the application is damaged/);
      }
      for (let length = 0; length <= 400; length++) {
        writeFileSync(path, executable(1000).subarray(0, length));
        assert.equal(readApplication(path), undefined, "a head that is cut off");
      }
      assert.deepEqual(readdirSync(folder).sort(), ["app", "runtime"]);
    }));
}

Deno.test("a load command that leads out of the head gives no end of the executable", () =>
  inFolder((folder) => {
    const [runtime, path] = [join(folder, "runtime"), join(folder, "app")];
    const head = ENDING["mach-o"](1000);
    head.writeUInt32LE(0x7fffffff, 36);
    writeFileSync(runtime, head);
    assert.equal(readApplication(runtime), undefined);
    writeApplication(path, runtime, ONE);
    assert.deepEqual(readApplication(path), ONE);
  }));

/** The head of an executable, with the text that single executables contain. */
function executable(parts: readonly (readonly [at: number, hex: string])[], text = "waft-application"): Uint8Array {
  const bytes = new Uint8Array(2048);
  for (const [at, hex] of parts) bytes.set(Buffer.from(hex, "hex"), at);
  bytes.set(new TextEncoder().encode(text), 1500);
  return bytes;
}

Deno.test("the platform of a single executable is in its head; other files are refused", () =>
  inFolder((folder) => {
    const path = join(folder, "runtime");
    const ELF: readonly [number, string] = [0, "7f454c460201"];
    const rows: readonly (readonly [string | undefined, Uint8Array])[] = [
      ["linux/amd64", executable([ELF, [18, "3e00"]])],
      ["linux/arm64", executable([ELF, [18, "b700"]])],
      [undefined, executable([ELF, [18, "f300"]])],
      ["darwin/amd64", executable([[0, "cffaedfe07000001"]])],
      ["darwin/arm64", executable([[0, "cffaedfe0c000001"]])],
      ["windows/amd64", executable([[0, "4d5a"], [60, "80000000"], [128, "504500006486"]])],
      [undefined, executable([[0, "4d5a"], [60, "80000000"], [128, "5045000064aa"]])],
      [undefined, executable([[0, "4d5a"], [60, "ffffffff"]])],
      [undefined, executable([ELF, [18, "3e00"]], "another program")],
      [undefined, new Uint8Array(0)],
    ];
    for (const [platform, bytes] of rows) {
      writeFileSync(path, bytes);
      if (platform !== undefined) assert.equal(runtimePlatform(path), platform);
      else assert.throws(() => runtimePlatform(path), /--runtime: .*runtime is not a single executable of waft$/);
    }
    assert.throws(() => runtimePlatform(join(folder, "none")), /--runtime: cannot read .*(ENOENT|NotFound)/);
  }));
