/**
 * Applications: they are written, read back, replaced and refused. In: small files in place of runtimes.
 */
import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, truncateSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
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
    assert.equal(statSync(path).mode & 0o777, 0o755);
    assert.deepEqual(readdirSync(folder).sort(), ["app", "runtime"]);
  }));

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
      changed[bit >> 3]! ^= 1 << (bit & 7);
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
