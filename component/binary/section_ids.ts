/**
 * The layout of a component in binary form: header and section ids (Binary, "Component Definitions").
 */

/** Magic number, version 13, layer 1. */
export const COMPONENT_HEADER: Uint8Array = Uint8Array.of(0x00, 0x61, 0x73, 0x6d, 0x0d, 0x00, 0x01, 0x00);

export const SECTION = {
  "custom": 0,
  "core module": 1,
  "core instance": 2,
  "core type": 3,
  "component": 4,
  "instance": 5,
  "alias": 6,
  "type": 7,
  "canon": 8,
  "start": 9,
  "import": 10,
  "export": 11,
  "value": 12,
} as const satisfies Record<string, number>;

/** Number of section ids. */
export const SECTION_COUNT = 13;

/** Whether the bytes begin like a component in binary form. */
export function isComponent(bytes: Uint8Array): boolean {
  return bytes.length >= 8 && COMPONENT_HEADER.every((byte, i) => (i >= 4 && i < 6) || bytes[i] === byte);
}
