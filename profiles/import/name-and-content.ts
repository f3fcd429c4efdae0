import { basename } from 'node:path';
import type { Platform } from '../../src/settings/field.ts';
import type { FormatName } from './importer.ts';
import { partOfName } from './part-name.ts';

/** What a file holds by its content: a deployment format, or what it is instead. */
export type Content = FormatName | 'yaml' | 'profile';

/** A file whose name says another format than its content. */
export interface WrongName {
  /** The system that would look for a file of that name and could not read it. */
  platform: Platform;
  /** A clause: `its name says registry file, and it is JSON`. */
  reason: string;
}

const FORMATS: Readonly<Record<string, { format: FormatName; platform: Platform }>> = {
  plist: { format: 'plist', platform: 'darwin' },
  mobileconfig: { format: 'mobileconfig', platform: 'darwin' },
  reg: { format: 'reg', platform: 'win32' },
  pol: { format: 'registry.pol', platform: 'win32' },
  json: { format: 'json', platform: 'linux' },
};

const WORDS: Readonly<Record<Content, string>> = {
  plist: 'a property list',
  mobileconfig: 'a configuration profile',
  reg: 'a registry file',
  'registry.pol': 'a policy file of Windows',
  json: 'JSON',
  yaml: 'YAML',
  profile: 'a profile document',
};

/**
 * Compares the name with the content; `undefined` where they agree or the name says nothing. `.json` alone is for everybody:
 * only `locked.json` and the like are what Linux looks for.
 */
export function wrongName(label: string, content: Content): WrongName | undefined {
  const extension = /\.([a-z]+)$/i.exec(basename(label.replaceAll('\\', '/')))?.[1]?.toLowerCase() ?? '';
  const said = Object.hasOwn(FORMATS, extension) ? FORMATS[extension] : undefined;
  if (!said || said.format === content) return undefined;
  const document = content === 'yaml' || content === 'profile';
  if (said.format === 'json' && document && partOfName(label) === undefined) return undefined;
  return { platform: said.platform, reason: `its name says ${WORDS[said.format]}, and it is ${WORDS[content]}` };
}
