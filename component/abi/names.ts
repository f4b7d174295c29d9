/** Names in JavaScript for names of WIT, as jco forms them. */

/** `a-kebab-name` as `aKebabName`; acronyms in capitals become words. */
export function camelCase(name: string): string {
  return name.toLowerCase().replace(/-(\w)/g, (_, letter: string) => letter.toUpperCase());
}

/** `a-kebab-name` as `AKebabName`. */
export function pascalCase(name: string): string {
  const camel = camelCase(name);
  return camel.charAt(0).toUpperCase() + camel.slice(1);
}
