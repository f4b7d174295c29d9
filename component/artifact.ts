/**
 * Artifacts of components: the component in binary form, and the artifact of each of its core modules. In: those parts.
 * Out: one sequence of bytes, and back. Invariant: a sequence that does not end where its parts end is refused; the
 * artifacts of modules carry their own checksums, and the component is validated again.
 */
import { ArtifactError } from "@waft/engine";

/** The parts of an artifact. */
interface ComponentArtifact {
  /** The component in binary form. */
  readonly component: Uint8Array;
  /** The artifacts of its core modules, in order of definition, those of nested components included. */
  readonly modules: readonly Uint8Array[];
}

const MAGIC = new TextEncoder().encode("\0waftcmp");
const VERSION = 1;
/** Magic, version, number of modules. */
const HEADER_BYTES = 16;
/** Parts begin at multiples of this, since the artifact of a module has columns of words. */
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
  const bytes = new Uint8Array(parts.reduce((at, part) => aligned(at + 4) + part.length, HEADER_BYTES));
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
  return bytes;
}

/** Takes an artifact apart. Throws ArtifactError for bytes that are none. */
export function splitArtifact(bytes: Uint8Array): ComponentArtifact {
  if (bytes.length < HEADER_BYTES || !isComponentArtifact(bytes)) {
    throw new ArtifactError("not an artifact of a component; artifacts are made by Component.serialize");
  }
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  const version = view.getUint32(8, true);
  if (version !== VERSION) throw new ArtifactError(`an artifact of version ${version}, not ${VERSION}; compile again`);
  const parts: Uint8Array[] = [];
  let at = HEADER_BYTES;
  for (let left = view.getUint32(12, true) + 1; left > 0; left--) {
    if (at + 4 > bytes.length) throw damaged();
    const length = view.getUint32(at, true);
    at = aligned(at + 4);
    if (at + length > bytes.length) throw damaged();
    parts.push(bytes.subarray(at, at += length));
  }
  if (at !== bytes.length) throw damaged();
  const [component, ...modules] = parts;
  return { component, modules };
}

export function damaged(): ArtifactError {
  return new ArtifactError("the artifact of a component is damaged; compile again");
}
