import type { Finding } from './finding.ts';
import type { ParsedDocument } from './parse.ts';

/**
 * The finding with file, line and column: of the value at its pointer, of its key for `key`, or of the nearest parent
 * present in the document.
 */
export function positioned<T extends Finding>(
  document: ParsedDocument,
  finding: T,
  part: 'key' | 'value' = 'value',
): T {
  let pointer = finding.pointer;
  let place = document.position(pointer, part);
  while (!place && pointer !== '') {
    pointer = pointer.slice(0, pointer.lastIndexOf('/'));
    place = document.position(pointer, 'key');
  }
  return { file: document.file, ...(place ?? {}), ...finding };
}
