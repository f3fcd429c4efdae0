import type { Platform } from '../src/settings/field.ts';
import { usage } from './arguments.ts';
import { quote } from './literals.ts';

/** As they are given to `--platform`, and as JSON forms name them. */
const PLATFORM_WORDS: Readonly<Record<string, Platform>> = { macos: 'darwin', linux: 'linux', windows: 'win32' };

/** @throws RdError `ERR_USAGE` for another word. */
export function platformOf(word: string): Platform {
  const name = word.toLowerCase();
  const platform = Object.hasOwn(PLATFORM_WORDS, name) ? PLATFORM_WORDS[name] : undefined;
  if (platform) return platform;
  throw usage(`--platform ${quote(word)}: known are ${Object.keys(PLATFORM_WORDS).join(', ')}`);
}

export function wordOf(platform: Platform): string {
  return Object.entries(PLATFORM_WORDS).find(([, each]) => each === platform)?.[0] ?? platform;
}
