/**
 * The formats of executables: ELF, Mach-O and PE. In: the first bytes of a file. Out: its platform, and the offset at
 * which its format says it ends. Invariant: the file may be damaged; every place is tested before it is read. Every
 * start of a single executable reads its head, so this loads nothing.
 */

/** The number of bytes at the start of a file that are its head, as far as this module reads it. */
export const HEAD_BYTES = 4096;
/** The shortest head, which the fields of fixed places are in. */
const MIN_HEAD_BYTES = 64;
const ELF = 0x7f454c46;
const MACHO = 0xfeedfacf;
const MZ = 0x4d5a;
const PE = 0x50450000;
const X64_PE = 0x8664;
const X64_ELF = 62, ARM64_ELF = 183;
const X64_MACHO = 0x01000007, ARM64_MACHO = 0x0100000c;
const LC_SEGMENT_64 = 0x19;
const MACHO_HEADER_BYTES = 32;
const MACHO_SEGMENT_BYTES = 56;
const PE_HEADER_BYTES = 24;
const PE_SECTION_BYTES = 40;
/** Offset in the optional header of PE32+ of the certificate table's place, which is outside of all sections. */
const PE_CERTIFICATES = 144;

/** The platform that the head of an executable names, such as `linux/amd64`; undefined for other files. */
export function platformOf(head: DataView): string | undefined {
  if (isElf(head)) return { [X64_ELF]: "linux/amd64", [ARM64_ELF]: "linux/arm64" }[head.getUint16(18, true)];
  if (isMachO(head)) return { [X64_MACHO]: "darwin/amd64", [ARM64_MACHO]: "darwin/arm64" }[head.getUint32(4, true)];
  const pe = peHeader(head);
  return pe !== undefined && head.getUint16(pe + 4, true) === X64_PE ? "windows/amd64" : undefined;
}

/** The offset after the last byte that belongs to the executable; undefined if its head does not contain it. */
export function executableEnd(head: DataView): number | undefined {
  if (isElf(head)) return elfEnd(head);
  if (isMachO(head)) return machOEnd(head);
  const pe = peHeader(head);
  return pe === undefined ? undefined : peEnd(head, pe);
}

function isElf(head: DataView): boolean {
  return head.byteLength >= MIN_HEAD_BYTES && head.getUint32(0) === ELF;
}

function isMachO(head: DataView): boolean {
  return head.byteLength >= MIN_HEAD_BYTES && head.getUint32(0, true) === MACHO;
}

/** The offset of the PE header. */
function peHeader(head: DataView): number | undefined {
  if (head.byteLength < MIN_HEAD_BYTES || head.getUint16(0) !== MZ) return undefined;
  const at = head.getUint32(60, true);
  return at <= head.byteLength - PE_HEADER_BYTES && head.getUint32(at) === PE ? at : undefined;
}

/** The table of sections is the last part of an ELF file. */
function elfEnd(head: DataView): number | undefined {
  const table = Number(head.getBigUint64(40, true));
  return table === 0 ? undefined : table + head.getUint16(58, true) * head.getUint16(60, true);
}

/** The end of the last segment; the signature is in one. */
function machOEnd(head: DataView): number | undefined {
  let at = MACHO_HEADER_BYTES, end = 0;
  for (let left = head.getUint32(16, true); left > 0; left--) {
    if (at + 8 > head.byteLength) return undefined;
    const bytes = head.getUint32(at + 4, true);
    if (head.getUint32(at, true) === LC_SEGMENT_64) {
      if (at + MACHO_SEGMENT_BYTES > head.byteLength) return undefined;
      end = Math.max(end, Number(head.getBigUint64(at + 40, true) + head.getBigUint64(at + 48, true)));
    }
    at += Math.max(bytes, 8);
  }
  return end === 0 ? undefined : end;
}

/** The end of the last section or of the certificates. */
function peEnd(head: DataView, pe: number): number | undefined {
  const optional = pe + PE_HEADER_BYTES;
  const sections = optional + head.getUint16(pe + 20, true);
  const count = head.getUint16(pe + 6, true);
  if (sections + count * PE_SECTION_BYTES > head.byteLength || sections < optional + PE_CERTIFICATES + 8) {
    return undefined;
  }
  let end = head.getUint32(optional + PE_CERTIFICATES, true) + head.getUint32(optional + PE_CERTIFICATES + 4, true);
  for (let k = 0; k < count; k++) {
    const at = sections + k * PE_SECTION_BYTES;
    end = Math.max(end, head.getUint32(at + 16, true) + head.getUint32(at + 20, true));
  }
  return end === 0 ? undefined : end;
}
