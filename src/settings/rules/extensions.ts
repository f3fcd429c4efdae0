import { isObject, type JsonObject } from '../../json.ts';
import { isImageName, isImageTag, parseExtensionPattern } from '../image-name.ts';
import type { Problem } from '../issue.ts';
import { equal, own } from '../own.ts';
import type { Rule } from './rule.ts';

/** Entries of the list of extensions that may be installed. */
export const extensionPatterns: Rule = ({ field, desired, changed }) => {
  if (!changed || !Array.isArray(desired)) return [];
  return desired.flatMap((pattern, index): Problem[] => {
    if (typeof pattern === 'string' && parseExtensionPattern(pattern)) return [];
    const message = `${field.path}: "${pattern}" does not describe an image reference`;
    return [
      {
        code: 'format',
        message,
        fatal: false,
        expected: 'an image such as "org/name:tag" or "org/"',
        entry: String(index),
      },
    ];
  });
};

/** Installed extensions: image names and tags. Entries that stay as they are need not be looked at. */
export const installedExtensions: Rule = ({ field, desired, current, changed }) => {
  if (!changed) return [];
  if (!isObject(desired)) {
    const got = typeof desired === 'string' ? desired : JSON.stringify(desired);
    const message = `${field.path}: "${got}" is not a valid mapping`;
    return [{ code: 'type', message, fatal: false, expected: 'a map of names to texts' }];
  }
  const stored = isObject(current) ? current : {};
  return Object.keys(desired)
    .filter((name) => !equal(own(desired, name), own(stored, name)))
    .flatMap((name) => entryProblems(field.path, desired, name));
};

function entryProblems(path: string, map: JsonObject, name: string): Problem[] {
  const tag = own(map, name) ?? null;
  const problems: string[] = [];
  if (!isImageName(name)) problems.push(`${path}: "${name}" is an invalid name`);
  if (typeof tag !== 'string') problems.push(`${path}: "${name}" has non-string tag "${tag}"`);
  else if (!isImageTag(tag)) problems.push(`${path}: "${name}" has invalid tag "${tag}"`);
  return problems.map((message) => ({
    code: 'format',
    message,
    fatal: false,
    expected: 'an image name without tag, and its tag',
    entry: name,
  }));
}
