import { readFileSync } from 'node:fs';
import { RdError } from '../../src/errors.ts';
import type { Platform } from '../../src/settings/field.ts';
import { usage } from './arguments.ts';
import { quote } from './literals.ts';

/** Throws `ERR_USAGE` on an unsupported operating system. */
export function supportedPlatform(platform: NodeJS.Platform): Platform {
  if (platform === 'darwin' || platform === 'linux' || platform === 'win32') return platform;
  throw new RdError('ERR_USAGE', `rdctl does not know the operating system ${platform}`, {
    advice: 'It runs on Linux, macOS and Windows.',
  });
}

/** The operating system's name as messages about flags use it. */
export interface PlatformName {
  platform: NodeJS.Platform;
  text: string;
}

/** `readKernel` returns `/proc/version`, which identifies Linux inside WSL. */
export function platformName(platform: NodeJS.Platform, readKernel: () => string = kernel): PlatformName {
  if (platform === 'darwin') return { platform, text: 'macOS' };
  if (platform === 'win32') return { platform, text: 'Windows' };
  if (platform !== 'linux') return { platform, text: platform };
  const inWsl = /^Linux version \S+-microsoft-standard-WSL2/.test(readKernel());
  return { platform, text: inWsl ? 'Linux in a WSL partition' : 'Linux' };
}

function kernel(): string {
  try {
    return readFileSync('/proc/version', 'utf8');
  } catch {
    // Unreadable in some containers, which are not WSL either.
    return '';
  }
}

/** Platform names accepted by `--platform` and used in JSON output. */
const PLATFORM_WORDS: Readonly<Record<string, Platform>> = { macos: 'darwin', linux: 'linux', windows: 'win32' };

/** @throws RdError `ERR_USAGE` for an unknown name. */
export function platformOf(word: string): Platform {
  const name = word.toLowerCase();
  const platform = Object.hasOwn(PLATFORM_WORDS, name) ? PLATFORM_WORDS[name] : undefined;
  if (platform) return platform;
  throw usage(`--platform ${quote(word)}: known are ${Object.keys(PLATFORM_WORDS).join(', ')}`);
}

export function wordOf(platform: Platform): string {
  return Object.entries(PLATFORM_WORDS).find(([, each]) => each === platform)?.[0] ?? platform;
}
