/**
 * Artifacts of components: the component in binary form, and the artifact of each of its core modules. In: those parts.
 * Out: one sequence of bytes, and back. Invariant: damaged bytes are refused. A checksum covers all parts together,
 * because the machine code of the modules relies on the component that it was compiled for.
 */
import { ArtifactError } from "@waft/engine";
import { checksum } from "@waft/engine/internal/artifact/checksum";

/** The parts of an artifact. */
interface ComponentArtifact {
  /** The component in binary form. */
  readonly component: Uint8Array;
  /** The artifacts of its core modules, in order of definition, those of nested components included. */
  readonly modules: readonly Uint8Array[];
}

const MAGIC = new TextEncoder().encode("\0waftcmp");
const VERSION = 2;
/** Magic, version, number of modules, checksum of everything after the header. */
const HEADER_BYTES = 32;
const CHECKSUM_AT = 16;
const CHECKSUM_WORDS = 4;
/** Parts begin and the artifact ends at multiples of this: modules have columns of words, and so has the checksum. */
const ALIGNMENT = 16;

function aligned(at: number): number {
  return Math.ceil(at / ALIGNMENT) * ALIGNMENT;
}

/** True for bytes that begin as an artifact of a component does. */
function isComponentArtifact(bytes: Uint8Array): boolean {
  return MAGIC.every((byte, k) => bytes[k] === byte);
}

/** Puts the parts together. */
export function joinArtifact({ component, modules }: ComponentArtifact): Uint8Array<ArrayBuffer> {
  const parts = [component, ...modules];
  const end = parts.reduce((at, part) => aligned(at + 4) + part.length, HEADER_BYTES);
  const bytes = new Uint8Array(aligned(end));
  const view = new DataView(bytes.buffer);
  bytes.set(MAGIC);
  view.setUint32(8, VERSION, true);
  view.setUint32(12, modules.length, true);
  let at = HEADER_BYTES;
  for (const part of parts) {
    view.setUint32(at, part.length, true);
    at = aligned(at + 4);
    bytes.set(part, at);
    at += part.length;
  }
  checksum(bytes.subarray(HEADER_BYTES), new Int32Array(bytes.buffer, CHECKSUM_AT, CHECKSUM_WORDS));
  return bytes;
}

/** Whether the checksum of an artifact is right. Its length is a multiple of the alignment. */
function isWhole(bytes: Uint8Array): boolean {
  const content = bytes.subarray(HEADER_BYTES);
  const sum = new Int32Array(CHECKSUM_WORDS);
  checksum(content.byteOffset % 4 === 0 ? content : content.slice(), sum);
  const view = new DataView(bytes.buffer, bytes.byteOffset + CHECKSUM_AT);
  return sum.every((word, k) => word === view.getInt32(4 * k, true));
}

/** Takes an artifact apart. Throws ArtifactError for other bytes. */
export function splitArtifact(bytes: Uint8Array): ComponentArtifact {
  if (bytes.length < HEADER_BYTES || !isComponentArtifact(bytes)) {
    throw new ArtifactError("not an artifact of a component; artifacts are made by Component.serialize");
  }
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  const version = view.getUint32(8, true);
  if (version !== VERSION) throw new ArtifactError(`an artifact of version ${version}, not ${VERSION}; compile again`);
  if (bytes.length % ALIGNMENT !== 0 || !isWhole(bytes)) throw damaged();
  const parts: Uint8Array[] = [];
  let at = HEADER_BYTES;
  for (let left = view.getUint32(12, true) + 1; left > 0; left--) {
    if (at + 4 > bytes.length) throw damaged();
    const length = view.getUint32(at, true);
    at = aligned(at + 4);
    if (at + length > bytes.length) throw damaged();
    parts.push(bytes.subarray(at, at += length));
  }
  if (aligned(at) !== bytes.length) throw damaged();
  const [component, ...modules] = parts;
  return { component, modules };
}

export function damaged(): ArtifactError {
  return new ArtifactError("the artifact of a component is damaged; compile again");
}
