import { RdError } from '../../src/errors.ts';
import { SCHEMA_VERSION } from '../../src/settings/settings.gen.ts';
import { parseRegistryFile } from '../formats/reg.ts';
import { keyAt, namesBelow, type RegistryKey, type RegistryValue } from '../formats/registry.ts';
import { registrySettings } from '../formats/registry-settings.ts';
import type { PolicyPrograms } from './places.ts';
import { invalidPolicy, type WrittenPolicy } from './policy.ts';

const VALUE = /^(?: {4}|\t)(.*?)(?: {4}|\t)(REG_[A-Z_]+)(?:(?: {4}|\t)(.*))?$/;
const TYPES = /(?: {4}|\t)REG_[A-Z_]+/g;
/** The value of a key itself has a name in the language of the user: `(Default)`. */
const UNNAMED = /^\(.*\)$/;
const KEY = /^HKEY_[A-Z_]+(?:\\|$)/;

/**
 * Everything below a key of this computer's registry; `undefined` when there is none.
 * @throws RdError `ERR_PROFILE_INVALID` when it cannot be read or holds what is not understood.
 */
export async function registryKey(path: string, programs: PolicyPrograms): Promise<RegistryKey | undefined> {
  try {
    return await queriedKey(path, programs);
  } catch (cause) {
    if (!(cause instanceof RdError) || cause.code === 'ERR_PROFILE_INVALID') throw cause;
    throw invalidPolicy(`could not read the deployment profile ${path}: ${cause.message}`, cause.details, cause);
  }
}

async function queriedKey(path: string, programs: PolicyPrograms): Promise<RegistryKey | undefined> {
  const output = await programs.queryRegistry(path, true);
  if (output === undefined) {
    if (await isListed(path, programs)) {
      throw invalidPolicy(`could not read the deployment profile ${path}: the registry key exists but cannot be read`);
    }
    return undefined;
  }
  const { key, doubtful } = parseQuery(path, output);
  if (!doubtful) return key;
  const exact = parseRegistryFile(path, await programs.exportRegistry(path));
  if (exact) return exact;
  throw invalidPolicy(`could not read the deployment profile ${path}: it has a value of an unsupported type`);
}

/** A query fails alike for a key that is not there and for one that may not be read; the key above knows which. */
async function isListed(path: string, programs: PolicyPrograms): Promise<boolean> {
  const above = await programs.queryRegistry(path.slice(0, path.lastIndexOf('\\')), false);
  return above !== undefined && listsKey(above, path);
}

/** What `reg query KEY /s` printed. */
export interface QueriedKey {
  key: RegistryKey;
  /** The text may not say what the registry holds: a text over lines, or letters that the console cannot show. */
  doubtful: boolean;
}

/**
 * Reads the output of `reg query ROOT /s`. Only what is the same in every language is looked at: paths of keys begin a line,
 * values are indented by four spaces, and the names of types are in English.
 */
export function parseQuery(root: string, output: string): QueriedKey {
  const key: RegistryKey = { name: root, values: [], keys: [] };
  // A question mark is what the console puts in the place of a letter that its code page lacks.
  let doubtful = /[\uFFFD?]/.test(output);
  let at: RegistryKey | undefined;
  let depth = 0;
  for (const line of output.split(/\r?\n/)) {
    if (line.trim() === '') continue;
    if (KEY.test(line)) {
      const names = namesBelow(root, line.trimEnd());
      at = names && keyAt(key, names);
      depth = names?.length ?? 0;
      continue;
    }
    const value = VALUE.exec(line);
    if (value && at) at.values.push(registryValue(value[1] ?? '', value[2] ?? '', value[3] ?? ''));
    else doubtful ||= at !== undefined;
    // A name or a text may look like the end of one.
    doubtful ||= at !== undefined && (line.match(TYPES)?.length ?? 0) > 1;
    // Deep down are maps, whose names may be in brackets, too.
    doubtful ||= depth > 1 && UNNAMED.test(value?.[1] ?? '');
  }
  return { key, doubtful };
}

/** Whether the output of `reg query PARENT` lists a key below it. */
function listsKey(output: string, path: string): boolean {
  return output.split(/\r?\n/).some((line) => namesBelow(path, line.trim())?.length === 0);
}

function registryValue(shown: string, type: string, text: string): RegistryValue {
  const name = UNNAMED.test(shown) ? '' : shown;
  switch (type) {
    case 'REG_SZ':
      return { name, type, data: text };
    case 'REG_DWORD':
    case 'REG_DWORD_LITTLE_ENDIAN':
    case 'REG_DWORD_BIG_ENDIAN':
      return { name, type, data: /^0x[0-9a-f]{1,8}$/i.test(text.trim()) ? Number(text.trim()) : undefined };
    case 'REG_MULTI_SZ':
      return { name, type, data: text === '' ? [] : text.split('\\0') };
    default:
      return { name, type, data: undefined };
  }
}

/**
 * The profile in a registry key; `undefined` for a key without any value that means something. Bad values are found here and
 * reported with the profile.
 */
export function registryPolicy(source: string, key: RegistryKey): WrittenPolicy | undefined {
  const { settings, recognised, findings } = registrySettings(key);
  if (recognised === 0) return undefined;
  const nameOf = (names: readonly string[]) => [source, ...names].join('\\');
  return {
    source,
    settings,
    nameOf,
    quote: (json) => `'${json}'`,
    heading: 'Error in registry settings:',
    noVersion:
      `Invalid deployment: no version specified at ${source}. ` +
      `Add a version field to make it valid (current version is ${SCHEMA_VERSION}).`,
    problems: findings.flatMap(({ names, what }) =>
      what.is === 'wrong-type'
        ? [`Error for field '${nameOf(names)}': expecting value of type ${what.expected}, got ${what.found}`]
        : [],
    ),
    passedOver: findings.flatMap(({ names, what }) => (what.is === 'no-setting' ? [nameOf(names)] : [])),
  };
}
