/**
 * Detects the processor's optional instructions with a probe in machine code. x64: CPUID (Intel SDM volume 2, "CPUID"),
 * and XGETBV for the operating system's support of the vector state; names are the manual's in lower case. arm64:
 * ID_AA64ISAR0_EL1, which Linux has let programs read since 4.11; every arm64 Mac has the features that waft asks for.
 */
import { type Host, PROT } from "./host.ts";

/**
 * void probe(uint32_t out[4]): out[0] = CPUID.1:ECX, out[1] = CPUID.7.0:EBX (0 when there is no leaf 7),
 * out[2] = CPUID.80000001h:ECX, out[3] = XCR0 (0 when the system does not use XSAVE).
 */
// deno-fmt-ignore
const X64_PROBE = Uint8Array.of(
  0x53, // push rbx
  0x31, 0xc0, // xor eax,eax
  0x0f, 0xa2, // cpuid
  0x41, 0x89, 0xc0, // mov r8d,eax
  0xb8, 0x01, 0x00, 0x00, 0x00, // mov eax,0x1
  0x31, 0xc9, // xor ecx,ecx
  0x0f, 0xa2, // cpuid
  0x89, 0x0f, // mov DWORD PTR [rdi],ecx
  0x41, 0x89, 0xc9, // mov r9d,ecx
  0x41, 0x83, 0xf8, 0x07, // cmp r8d,0x7
  0x72, 0x0c, // jb 0x28
  0xb8, 0x07, 0x00, 0x00, 0x00, // mov eax,0x7
  0x31, 0xc9, // xor ecx,ecx
  0x0f, 0xa2, // cpuid
  0x89, 0x5f, 0x04, // mov DWORD PTR [rdi+0x4],ebx
  0xb8, 0x01, 0x00, 0x00, 0x80, // mov eax,0x80000001
  0x0f, 0xa2, // cpuid
  0x89, 0x4f, 0x08, // mov DWORD PTR [rdi+0x8],ecx
  0x41, 0x0f, 0xba, 0xe1, 0x1b, // bt r9d,0x1b
  0x73, 0x08, // jae 0x41
  0x31, 0xc9, // xor ecx,ecx
  0x0f, 0x01, 0xd0, // xgetbv
  0x89, 0x47, 0x0c, // mov DWORD PTR [rdi+0xc],eax
  0x5b, // pop rbx
  0xc3, // ret
);

/** Bit positions: [word, bit, name, needs the AVX state]. */
const X64_FEATURES: readonly (readonly [number, number, string, boolean])[] = [
  [0, 0, "sse3", false],
  [0, 9, "ssse3", false],
  [0, 12, "fma", true],
  [0, 19, "sse4.1", false],
  [0, 20, "sse4.2", false],
  [0, 23, "popcnt", false],
  [0, 28, "avx", true],
  [1, 3, "bmi1", false],
  [1, 5, "avx2", true],
  [1, 8, "bmi2", false],
  [1, 9, "erms", false],
  [2, 5, "lzcnt", false],
];

/** void probe(uint64_t out[1]): out[0] = ID_AA64ISAR0_EL1. */
// deno-fmt-ignore
const ARM64_PROBE = Uint8Array.of(
  0x01, 0x06, 0x38, 0xd5, // mrs x1, ID_AA64ISAR0_EL1
  0x01, 0x00, 0x00, 0xf9, // str x1, [x0]
  0xc0, 0x03, 0x5f, 0xd6, // ret
);

/** Bit position in ID_AA64ISAR0_EL1 of the field that says whether there are atomic instructions (2 or more: LSE). */
const ATOMIC_FIELD = 20;

/** Every optional feature that code may use, by architecture. */
export const CPU_FEATURES: Readonly<Record<Host["arch"], readonly string[]>> = {
  x64: X64_FEATURES.map(([, , name]) => name),
  arm64: ["lse"],
};

/** This machine's architecture as reported by the JavaScript runtime; does not create a host interface. */
export function hostArchitecture(): "x64" | "arm64" {
  // Naming `process` would load it on Deno (process.ts).
  const { Deno: deno } = globalThis as { Deno?: { build: { arch: string } } };
  const arch = deno?.build.arch ?? process.arch;
  return arch === "aarch64" || arch === "arm64" ? "arm64" : "x64";
}

/** The features, once they were detected. */
let known: ReadonlySet<string> | undefined;

/** The processor's optional features. Throws SystemError without memory to run the probe. */
export function cpuFeatures(host: Host): ReadonlySet<string> {
  return known ??= host.releasingOnError(() => host.arch === "x64" ? probeX64(host) : probeArm64(host));
}

/**
 * A probe for a library with other code: a function of one pointer, which writes its results `offset` bytes after it.
 * undefined if the features are known.
 */
export function probeCode({ arch, system }: Host, offset: number): Uint8Array | undefined {
  if (known !== undefined || (arch === "arm64" && system.arm64Features !== undefined)) return undefined;
  const start = arch === "x64" ? [0x48, 0x81, 0xc7, 0, 0, 0, 0] : [0, 0, 0, 0]; // add rdi, offset
  const probe = arch === "x64" ? X64_PROBE : ARM64_PROBE;
  const code = new Uint8Array(start.length + probe.length);
  code.set(start);
  code.set(probe, start.length);
  const view = new DataView(code.buffer);
  if (arch === "x64") view.setInt32(3, offset, true);
  else view.setUint32(0, 0x91000000 | (offset << 10), true); // add x0, x0, offset
  return code;
}

/** Takes the results of {@linkcode probeCode}. */
export function noteProbe({ arch }: Host, results: Uint32Array): void {
  known = arch === "x64" ? featuresX64(results) : featuresArm64(results);
}

function probeX64(host: Host): ReadonlySet<string> {
  return featuresX64(probed(host, X64_PROBE));
}

/** The results of `probe`. */
function probed(host: Host, probe: Uint8Array): Uint32Array {
  const page = host.reserve(host.pageSize, PROT.READ | PROT.WRITE);
  host.runOnce(probe, page);
  const words = new Uint32Array(host.view(page, 16)).slice();
  host.release(page, host.pageSize);
  return words;
}

function featuresX64(words: Uint32Array): ReadonlySet<string> {
  const avxState = (words[3] & 6) === 6;
  const found = new Set<string>();
  for (const [word, bit, name, needsAvx] of X64_FEATURES) {
    if ((words[word] >>> bit) & 1 && (!needsAvx || avxState)) found.add(name);
  }
  return found;
}

function probeArm64(host: Host): ReadonlySet<string> {
  if (host.system.arm64Features !== undefined) return new Set(host.system.arm64Features);
  return featuresArm64(probed(host, ARM64_PROBE));
}

function featuresArm64(words: Uint32Array): ReadonlySet<string> {
  return new Set(((words[0] >>> ATOMIC_FIELD) & 15) >= 2 ? ["lse"] : []);
}
