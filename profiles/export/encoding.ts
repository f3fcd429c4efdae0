/** How the text of a registry file becomes bytes. */
export const REGISTRY_ENCODINGS = ['utf-8', 'utf-16le'] as const;
export type RegistryEncoding = (typeof REGISTRY_ENCODINGS)[number];

/**
 * The bytes of a registry file. `utf-16le` is what the registry editor writes itself, with a byte order mark and CRLF, and what
 * it reads with any character. `utf-8` is the text as it is, as the compatible tool prints it: without a mark the editor takes
 * it for the code page of the computer, so that only ASCII arrives (`isAscii`).
 * @param text with LF at line ends and nowhere else, as `regText` returns it.
 */
export function encodeRegistryFile(text: string, encoding: RegistryEncoding): Buffer {
  if (encoding === 'utf-8') return Buffer.from(text, 'utf8');
  return Buffer.from(`\ufeff${text.replaceAll('\n', '\r\n')}`, 'utf16le');
}

/** Whether the text is the same in every code page. */
export function isAscii(text: string): boolean {
  return /^[\0-\x7f]*$/.test(text);
}
