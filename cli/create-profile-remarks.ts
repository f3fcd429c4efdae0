import type { SelectedSettings } from '../profiles/document/selection.ts';
import { isAscii, type Part } from '../profiles/formats/format.ts';
import type { ProfileRequest } from './create-profile-request.ts';

type FileRequest = Pick<Extract<ProfileRequest, { what: 'profile' }>, 'format' | 'part' | 'encoding'>;

/** A value of a .reg file that is written as the bytes of a text or of a list. */
const TEXT_BYTES = /^"(?:[^"\\]|\\.)*"=hex\([17]\):/m;

/** What is to be said of a file that was made: of its encoding, and of the settings that are in the other one. */
export function remarks(
  text: string,
  elsewhere: SelectedSettings['elsewhere'],
  request: FileRequest,
): { warnings: string[]; notes: string[] } {
  const warnings: string[] = [];
  const notes = otherPart(elsewhere, request);
  if (request.format !== 'reg' || request.encoding !== 'utf-8') return { warnings, notes };
  if (!isAscii(text)) {
    warnings.push('regedit would read what is not ASCII in the code page of its computer; use --encoding utf-16le.');
  }
  if (TEXT_BYTES.test(text)) {
    notes.push(
      'lists, and texts with control characters, are safe with --encoding utf-16le: in a file in UTF-8, some programs read their bytes in the code page of their computer.',
    );
  }
  return { warnings, notes };
}

function otherPart({ settings, only }: SelectedSettings['elsewhere'], { part, format }: FileRequest): string[] {
  const other: Part = part === 'locked' ? 'defaults' : 'locked';
  const writes = (it: string) => `(--${format === 'reg' ? 'type' : 'part'} ${other} writes ${it})`;
  const among = other === 'locked' ? 'locked' : 'among the defaults';
  const notes = only.map((name) => `nothing of --only ${name} is in this file: it is ${among} ${writes('it')}.`);
  const what = other === 'locked' ? ['locked', 'locked'] : ['a default', 'defaults'];
  if (settings === 1) notes.push(`1 setting is ${what[0]} and not in this file ${writes('it')}.`);
  else if (settings > 1) notes.push(`${settings} settings are ${what[1]} and not in this file ${writes('them')}.`);
  return notes;
}
