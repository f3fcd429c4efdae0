import type { ImageReference } from './reference.ts';
import { formatReference } from './reference.ts';

const SETTING = 'containerEngine.allowedImages.patterns';
/** Maximum number of patterns in a message. */
const SHOWN = 5;

/** The refusal: what, which setting, and what to do. One line each, because they are sent in headers. */
export function explainImage(reference: ImageReference, patterns: readonly string[]): string {
  const name = formatReference(reference);
  const what = reference.tag === undefined && reference.digest === undefined ? `all tags of ${name}` : name;
  return `${what} is not among the allowed images: ${SETTING} ${listed(patterns)}. ${advice(name)}`;
}

export function explainRegistry(registry: string, patterns: readonly string[]): string {
  return `nothing of ${registry} is among the allowed images: ${SETTING} ${listed(patterns)}. ${advice(`${registry}/*`)}`;
}

/** `what`: how the images would arrive, as a subject. */
export function explainUnnamed(what: string): string {
  return `${what} can bring in any image, and only those in ${SETTING} are allowed. Allow every image with the pattern *, or pull the image by its name.`;
}

function advice(pattern: string): string {
  return `To allow it, add ${pattern} to that setting (rdctl apply), or ask whoever manages it.`;
}

function listed(patterns: readonly string[]): string {
  if (patterns.length === 0) return 'is empty';
  const more = patterns.length > SHOWN ? ` and ${patterns.length - SHOWN} more` : '';
  return `has ${patterns.slice(0, SHOWN).map(printable).join(', ')}${more}`;
}

/** The setting may contain any text, including line breaks. */
function printable(text: string): string {
  const short = text.length > 60 ? `${text.slice(0, 57)}...` : text;
  return JSON.stringify(short)
    .slice(1, -1)
    .replace(/[^ -~]/g, '?');
}
