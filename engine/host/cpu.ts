/**
 * Detects the processor's optional instructions with a probe in machine code. x64: CPUID (Intel SDM volume 2, "CPUID"),
 * and XGETBV for the operating system's support of the vector state; names are the manual's in lower case. arm64:
 * ID_AA64ISAR0_EL1, which Linux has let programs read since 4.11; every arm64 Mac has the features that waft asks for.
 */
import { fromBase64 } from "../base/base64.ts";
import { PROBE } from "./code/generated_code.ts";
import { type Host, PROT } from "./host.ts";
import { ownDeno } from "./globals.ts";

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
  const arch = ownDeno?.build.arch ?? process.arch;
  return arch === "aarch64" || arch === "arm64" ? "arm64" : "x64";
}

/** The features, once they were detected. */
let known: ReadonlySet<string> | undefined;

/** The processor's optional features. Throws SystemError without memory to run the probe. */
export function cpuFeatures(host: Host): ReadonlySet<string> {
  return known ??= host.releasingOnError(() => host.arch === "x64" ? probeX64(host) : probeArm64(host));
}

/**
 * A probe for a library with other code: a function of the address of the thread state, which writes its results to the
 * slots (THREAD.SLOTS). undefined if the features are known.
 */
export function probeCode({ arch, system }: Host): Uint8Array | undefined {
  if (known !== undefined || (arch === "arm64" && system.arm64Features !== undefined)) return undefined;
  return fromBase64(PROBE[arch].code);
}

/** Takes the results of {@linkcode probeCode}. */
export function noteProbe({ arch }: Host, results: Uint32Array): void {
  known = arch === "x64" ? featuresX64(results) : featuresArm64(results);
}

function probeX64(host: Host): ReadonlySet<string> {
  return featuresX64(probed(host));
}

/** The results of the probe. */
function probed(host: Host): Uint32Array {
  const { code, labels } = PROBE[host.arch];
  const page = host.reserve(host.pageSize, PROT.READ | PROT.WRITE);
  host.runOnce(fromBase64(code).subarray(labels.probe), page);
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
  return featuresArm64(probed(host));
}

function featuresArm64(words: Uint32Array): ReadonlySet<string> {
  return new Set(((words[0] >>> ATOMIC_FIELD) & 15) >= 2 ? ["lse"] : []);
}
