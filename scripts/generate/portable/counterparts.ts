/** The AssemblyScript texts of modules whose TypeScript cannot be rewritten, by file below engine/. */
export const COUNTERPARTS: Readonly<Record<string, string>> = {
  "base/columns.ts": `
export function doubled<C>(column: C, need: i32): C {
  return grown<C>(column, max(need, column.length * 2));
}
export function grown<C>(column: C, length: i32): C {
  const copy = instantiate<C>(length);
  memory.copy(copy.dataStart, column.dataStart, column.byteLength);
  return copy;
}
`,
  // The failure that ended the compiler, as a status that the host words.
  "translate/failures.ts": `
export let failure: i32 = 0;
export let failureSubject: i32 = 0;
export let failureAt: i32 = 0;
export function forgetFailure(): void { failure = 0; }
function note(kind: i32, subject: i32, at: i32): void { failure = kind; failureSubject = subject; failureAt = at; }
export function tooLarge(funcIndex: i32, offset: i32): void { note(1, funcIndex, offset); }
export function notCompiled(id: i32, offset: i32): void { note(2, id, offset); }
export function loopsTooLarge(offset: i32): void { note(3, 0, offset); }
`,
  "base/numbers.ts": `
@inline export function unsigned(bits: i32): f64 { return <f64>(<u32>bits); }
@inline export function wideIndex(word: i32): i32 { return word; }
@inline export function isBelow(x: i32, y: i32): bool { return <u32>x < <u32>y; }
@inline export function lowWord(x: f64): i32 { return <i32>(<i64>x); }
@inline export function highWord(x: f64): i32 { return <i32>(<i64>floor(x / 4294967296.0)); }
@inline export function f32OfBits(bits: i32): f64 { return <f64>reinterpret<f32>(bits); }
@inline export function bitsOfF32(x: f64): i32 { return reinterpret<i32>(<f32>x); }
@inline export function f64OfBits(lo: i32, hi: i32): f64 { return reinterpret<f64>((<i64>hi << 32) | <i64>(<u32>lo)); }
@inline export function lowBits(x: f64): i32 { return <i32>reinterpret<i64>(x); }
@inline export function highBits(x: f64): i32 { return <i32>(reinterpret<i64>(x) >> 32); }
`,
  // Tables of constants are complete when they are copied.
  "backend_x64/expand_rows.ts": `
@inline export function needRow(row: i32): void {}
`,
};
