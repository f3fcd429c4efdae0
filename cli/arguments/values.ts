import { readFileSync } from 'node:fs';
import { RdError } from '../../src/errors.ts';
import type { Platform } from '../../src/settings/field.ts';

/** Returns a usage error that Rancher Desktop's `rdctl` reports without the usage block. */
export function mistake(message: string): RdError {
  return new RdError('ERR_BODY_INVALID', message);
}

/** Returns a usage error; `main` prints the usage line after it. */
export function usage(message: string, advice?: string): RdError {
  return new RdError('ERR_USAGE', message, advice === undefined ? {} : { advice });
}

/** A usage error that scripts match in the words of Rancher Desktop's `rdctl`, for the commands that it has. */
class ClassicMistake extends RdError {
  /** The message for commands that it does not have. */
  readonly plain: string;

  constructor(message: string, plain: string, advice?: string) {
    super('ERR_USAGE', message, advice === undefined ? {} : { advice });
    this.plain = plain;
  }
}

/** Returns a usage error in both wordings; `inWordsOf` chooses one. */
export function classicMistake(message: string, plain: string, advice?: string): RdError {
  return new ClassicMistake(message, plain, advice);
}

/** Returns an error in the wording of a classic command, or of one that is ours alone. */
export function inWordsOf(command: { classic: boolean } | undefined, error: unknown): unknown {
  if (!(error instanceof ClassicMistake) || command?.classic !== false) return error;
  return usage(error.plain, error.advice);
}

/** Parse errors of flag literals in both wordings, without the name of the flag, which the caller prepends. */
export class LiteralError extends Error {
  /** The requirement on the value: `must be true or false`. */
  readonly plain: string;

  constructor(message: string, plain: string) {
    super(message);
    this.plain = plain;
  }
}

const TRUE = new Set(['1', 't', 'T', 'true', 'True', 'TRUE']);
const FALSE = new Set(['0', 'f', 'F', 'false', 'False', 'FALSE']);

export function parseBoolean(text: string): boolean {
  if (TRUE.has(text)) return true;
  if (FALSE.has(text)) return false;
  throw new LiteralError(`strconv.ParseBool: parsing ${quote(text)}: invalid syntax`, 'must be true or false');
}

// An underscore may follow a base prefix or separate digits. Leading zeros are decimal: `010` is ten, not octal.
const INTEGER =
  /^([+-]?)(?:0[xX](_?[0-9a-fA-F]+(?:_[0-9a-fA-F]+)*)|0[oO](_?[0-7]+(?:_[0-7]+)*)|0[bB](_?[01]+(?:_[01]+)*)|([0-9]+(?:_[0-9]+)*))$/;

const WHOLE = 'must be a whole number';

/** Parses an integer: decimal, `0x`, `0o`, `0b`, with `_` between digits. Values that a JSON number cannot hold exactly are out of range. */
export function parseInteger(text: string): number {
  const match = INTEGER.exec(text);
  if (!match) throw new LiteralError(`strconv.ParseInt: parsing ${quote(text)}: invalid syntax`, WHOLE);
  const [, sign, hex, octal, binary, decimal] = match;
  const digits =
    hex !== undefined
      ? `0x${hex}`
      : octal !== undefined
        ? `0o${octal}`
        : binary !== undefined
          ? `0b${binary}`
          : (decimal ?? '');
  const size = Number(digits.replaceAll('_', ''));
  if (!Number.isSafeInteger(size)) {
    throw new LiteralError(`strconv.ParseInt: parsing ${quote(text)}: value out of range`, 'is out of range');
  }
  return sign === '-' && size !== 0 ? -size : size;
}

const UNITS: Readonly<Record<string, number>> = {
  ns: 1e-6,
  us: 1e-3,
  µs: 1e-3,
  μs: 1e-3,
  ms: 1,
  s: 1000,
  m: 60_000,
  h: 3_600_000,
};

const DURATION = 'must be a duration with a unit, such as 30s, 10m or 1h30m';

/** Parses `300ms`, `1.5s`, `1h30m` to milliseconds; a bare `0` needs no unit. */
export function parseDuration(text: string): number {
  const sign = text.startsWith('-') ? -1 : 1;
  let rest = text.replace(/^[+-]/, '');
  if (rest === '0') return 0;
  if (rest === '') throw new LiteralError(`time: invalid duration ${quote(text)}`, DURATION);
  let total = 0;
  while (rest !== '') {
    const amount = /^(?:[0-9]+\.?[0-9]*|\.[0-9]+)/.exec(rest)?.[0];
    if (amount === undefined) throw new LiteralError(`time: invalid duration ${quote(text)}`, DURATION);
    const unit = /^[^0-9.]*/.exec(rest.slice(amount.length))?.[0] ?? '';
    if (unit === '') throw new LiteralError(`time: missing unit in duration ${quote(text)}`, DURATION);
    const factor = Object.hasOwn(UNITS, unit) ? UNITS[unit] : undefined;
    if (factor === undefined) {
      throw new LiteralError(`time: unknown unit ${quote(unit)} in duration ${quote(text)}`, DURATION);
    }
    total += Number(amount) * factor;
    rest = rest.slice(amount.length + unit.length);
  }
  // The maximum of 64-bit nanoseconds, in milliseconds.
  if (total > 9_223_372_036_854) throw new LiteralError(`time: invalid duration ${quote(text)}`, DURATION);
  return sign * total;
}

/** Formats milliseconds as `10m0s`, `5s`, `300ms`, as messages write durations. */
export function formatDuration(ms: number): string {
  if (ms === 0) return '0s';
  if (Math.abs(ms) < 1000) return `${ms}ms`;
  const sign = ms < 0 ? '-' : '';
  const seconds = Math.abs(ms) / 1000;
  const hours = Math.floor(seconds / 3600);
  const minutes = Math.floor((seconds % 3600) / 60);
  const rest = Number((seconds % 60).toFixed(3));
  if (hours > 0) return `${sign}${hours}h${minutes}m${rest}s`;
  return minutes > 0 ? `${sign}${minutes}m${rest}s` : `${sign}${rest}s`;
}

/** Returns a string in double quotes with control characters escaped. */
export function quote(text: string): string {
  return JSON.stringify(text);
}

/** The operating system's name in messages about flags. */
export interface PlatformName {
  platform: Platform;
  text: string;
}

/** Returns the platform's name. `readKernel` returns `/proc/version`, which identifies Linux inside WSL. */
export function platformName(platform: Platform, readKernel: () => string = kernel): PlatformName {
  if (platform === 'darwin') return { platform, text: 'macOS' };
  if (platform === 'win32') return { platform, text: 'Windows' };
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

/** Returns the platform of a name. @throws RdError `ERR_USAGE` for an unknown one. */
export function platformOf(word: string): Platform {
  const name = word.toLowerCase();
  const platform = Object.hasOwn(PLATFORM_WORDS, name) ? PLATFORM_WORDS[name] : undefined;
  if (platform) return platform;
  throw usage(`--platform ${quote(word)}: must be one of ${Object.keys(PLATFORM_WORDS).join(', ')}`);
}

export function wordOf(platform: Platform): string {
  return Object.entries(PLATFORM_WORDS).find(([, each]) => each === platform)?.[0] ?? platform;
}
