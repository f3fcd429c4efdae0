import { lstat } from 'node:fs/promises';
import { RdError } from '../../src/errors.ts';
import { isObject, isTooDeep, MOST_LEVELS } from '../../src/json.ts';
import { ioError, systemCode } from '../../src/os/io-error.ts';
import { openToRead } from '../../src/os/regular-file.ts';
import { shellQuoted } from '../../src/os/shell-quoted.ts';
import { SCHEMA_VERSION } from '../../src/settings/settings.gen.ts';
import { tooLong } from '../../src/settings/source-text.ts';
import { exposureFix, exposureOf, exposureText, trustOfSystem, trustOfUser } from '../../src/state/ownership.ts';
import { decoded, PROFILE_LIMIT } from '../formats/format.ts';
import { jsonObject, parsedJson } from '../formats/json.ts';
import { isUtf8Xml, jsonOf } from '../formats/plist.ts';
import { xmlPlist } from '../formats/plist-xml.ts';
import type { PolicyPlace } from './places.ts';
import { invalidPolicy, type WrittenPolicy } from './policy.ts';
import type { PolicyPrograms } from './programs.ts';

/** Whose a profile is: root's where `system`, else of the user or root. */
type PolicyOwner = Pick<PolicyPlace, 'own' | 'system'>;

/**
 * The bytes of a profile; `undefined` when there is no file. A link to a file is followed.
 * @throws RdError `ERR_PROFILE_INVALID` for what is there and cannot be read, or could be written by others: passing over it would
 *   lift a protection, and so would obeying what anybody may have put there.
 */
export async function readPolicyFile(path: string, owner: PolicyOwner): Promise<Buffer | undefined> {
  // Where others can write they can also have removed it. In the home of a user it protects from nobody but the user.
  if (!owner.own) refuseExposedPolicy(path, owner);
  try {
    const handle = await openToRead(path, { follow: true });
    try {
      const stat = await handle.stat();
      if (owner.own) refuseExposedPolicy(path, owner);
      if (stat.size > PROFILE_LIMIT) throw notReadable(path, `it ${tooLong(stat.size, PROFILE_LIMIT)}`);
      const bytes = await handle.readFile();
      // It may have grown since.
      if (bytes.length > PROFILE_LIMIT) throw notReadable(path, `it ${tooLong(bytes.length, PROFILE_LIMIT)}`);
      return bytes;
    } finally {
      await handle.close();
    }
  } catch (cause) {
    if (systemCode(cause) === 'EISDIR') throw notReadable(path, 'it is a directory');
    if (systemCode(cause) !== 'ENOENT') throw unreadable(path, cause);
    if (await isLink(path)) throw notReadable(path, 'it is a link to a file that is not there');
    return undefined;
  }
}

function unreadable(path: string, cause: unknown): RdError {
  // Something that is no file says so by itself.
  if (cause instanceof RdError)
    return cause.code === 'ERR_PROFILE_INVALID' ? cause : notReadable(path, 'it is not a file');
  const known = ioError('read the deployment profile', path, cause, 'ERR_PROFILE_INVALID');
  return invalidPolicy(known.message, [], cause);
}

function notReadable(path: string, reason: string): RdError {
  return invalidPolicy(`could not read the deployment profile ${path}: ${reason}`);
}

/** @throws RdError `ERR_PROFILE_INVALID` naming what others can write, with the command that ends that. */
function refuseExposedPolicy(path: string, { system }: PolicyOwner): void {
  const exposure = exposureOf(path, system ? trustOfSystem() : trustOfUser());
  if (!exposure) return;
  const fix = exposureFix(exposure) ?? `chown ${system ? 'root' : '"$(id -un)"'} ${shellQuoted(exposure.path)}`;
  throw invalidPolicy(`the deployment profile ${path} cannot be trusted: ${exposureText(exposure)}`, [
    `To correct that${system ? ', as root' : ''}: \`${fix}\`, after a look at what the profile says.`,
  ]);
}

async function isLink(path: string): Promise<boolean> {
  return lstat(path).then(
    (stat) => stat.isSymbolicLink(),
    () => false,
  );
}

/** Reads a profile of Linux. Throws `ERR_PROFILE_INVALID`; `undefined` when there is no file. */
export async function readJsonPolicy(path: string, owner: PolicyOwner): Promise<WrittenPolicy | undefined> {
  const bytes = await readPolicyFile(path, owner);
  if (bytes === undefined) return undefined;
  const wrong = (reason: string, details?: readonly string[]) =>
    invalidPolicy(`Error parsing deployment profile from ${path}: ${reason}`, details);
  return writtenFile(path, jsonObject(bytes, path, wrong, 'it has mistakes'));
}

/**
 * Reads a profile of macOS. XML is read here; what management software writes is mostly binary, and the system's own program
 * turns that into JSON. Throws `ERR_PROFILE_INVALID`; `undefined` when there is no file.
 */
export async function readPlistPolicy(
  path: string,
  programs: PolicyPrograms,
  owner: PolicyOwner,
): Promise<WrittenPolicy | undefined> {
  const bytes = await readPolicyFile(path, owner);
  if (bytes === undefined) return undefined;
  const wrong = (reason: string, cause?: unknown) =>
    invalidPolicy(`Error loading plist file ${path}: ${reason}`, [], cause);
  const broken = (cause: unknown) => {
    throw wrong(cause instanceof Error ? cause.message : String(cause), cause);
  };
  const text = decoded(bytes);
  if (text !== undefined && isUtf8Xml(text)) {
    const list = await Promise.resolve(text).then(xmlPlist).catch(broken);
    const value = jsonOf(list, (place, other) => {
      throw wrong(`"${place}" is ${other}, which no setting can be`);
    });
    if (!isObject(value)) throw wrong('it does not hold a dictionary');
    return writtenFile(path, value);
  }
  const answer = await programs.plistAsJson(path).catch(broken);
  if (isTooDeep(answer)) throw wrong(`it nests deeper than ${MOST_LEVELS} levels`);
  const value = parsedJson(answer);
  // The parser's message quotes the text, which may hold a password.
  if (value === undefined) throw wrong('plutil did not answer JSON');
  if (!isObject(value)) throw wrong('it does not hold a dictionary');
  return writtenFile(path, value);
}

/** A profile out of a file whose names are those of the settings. */
export function writtenFile(path: string, settings: WrittenPolicy['settings']): WrittenPolicy {
  return {
    source: path,
    settings,
    nameOf: (names) => names.join('.'),
    quote: (json) => json,
    heading: `Error in deployment file ${path}:`,
    noVersion:
      `Invalid deployment file ${path}: no version specified. ` +
      `Add a version field to make it valid (current version is ${SCHEMA_VERSION}).`,
    problems: [],
    passedOver: [],
  };
}
