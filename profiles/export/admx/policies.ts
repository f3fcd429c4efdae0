import { COMPATIBLE } from '../../../src/product.ts';
import type { Field } from '../../../src/settings/field.ts';
import { FIELDS } from '../../../src/settings/fields.gen.ts';
import type { SettingPath } from '../../../src/settings/settings.gen.ts';
import { PARTS, type Part } from '../../deployment/part.ts';

/** A setting in one of the two profiles, as a policy that an administrator enables. */
export interface Policy {
  /** Unique in the file: `Locked_kubernetes_port`. */
  name: string;
  part: Part;
  field: Field;
  /** Name of the category that it is listed in. */
  category: string;
  /** Registry key that holds the value, without the hive. The entries of a map are values of `key\valueName`. */
  key: string;
  valueName: string;
  /** What enabling it turns on as well, because without that the value is refused. */
  needs: readonly { path: SettingPath; key: string; valueName: string }[];
}

/** A setting that no policy exists for. */
export interface Exception {
  path: SettingPath;
  reason: string;
}

/** Keys and categories of the two profiles, and the first part of the names of their policies. */
export const PART_NAMES: Readonly<Record<Part, string>> = { locked: 'Locked', defaults: 'Defaults' };

/** Switches that are refused unless another one is on (settings facts, 3.4). */
const NEEDS: Readonly<Partial<Record<SettingPath, readonly SettingPath[]>>> = {
  'experimental.kubernetes.options.spinkube': ['experimental.containerEngine.webAssembly.enabled'],
};

/** Settings whose policies write this one as well. */
export function neededBy(path: SettingPath): readonly string[] {
  return Object.entries(NEEDS).flatMap(([other, needs]) => (needs.includes(path) ? [other] : []));
}

/** The key of a profile, without the hive. */
export function profileKey(part: Part): string {
  return `${COMPATIBLE.policyKey}\\${PART_NAMES[part]}`;
}

/** A policy for each part of each setting that can be one, in the order of the schema. */
export function policies(): readonly Policy[] {
  const fields = FIELDS.filter((field) => field.lockable && reasonAgainst(field) === undefined);
  return PARTS.flatMap((part) => fields.map((field) => policyOf(field, part)));
}

/** Every lockable setting that is no policy, and why. */
export function admxExceptions(): readonly Exception[] {
  return FIELDS.flatMap((field) => {
    const reason = field.lockable ? reasonAgainst(field) : undefined;
    return reason === undefined ? [] : [{ path: field.path, reason }];
  });
}

/** Top-level sections that have policies, in the order of the schema. */
export function sectionNames(): readonly string[] {
  return [...new Set(policies().map(({ field }) => sectionOf(field)))];
}

export function categoryName(part: Part, section: string): string {
  return `${PART_NAMES[part]}_${section}`;
}

function policyOf(field: Field, part: Part): Policy {
  const needs = (NEEDS[field.path] ?? []).map((path) => ({ path, ...placeOf(path, part) }));
  const name = `${PART_NAMES[part]}_${field.path.replaceAll('.', '_')}`;
  return { name, part, field, category: categoryName(part, sectionOf(field)), ...placeOf(field.path, part), needs };
}

function sectionOf({ path }: Field): string {
  return path.split('.')[0] ?? path;
}

function placeOf(path: SettingPath, part: Part): { key: string; valueName: string } {
  const names = path.split('.');
  const valueName = names.pop() ?? path;
  return { key: [profileKey(part), ...names].join('\\'), valueName };
}

function reasonAgainst({ platforms, sensitive, type }: Field): string | undefined {
  if (!platforms.includes('win32')) return 'the application on Windows refuses any value but its own';
  if (sensitive) return 'it is a secret, and policies can be read by everybody on the computer';
  if (type === 'map<string,boolean>') return 'its entries are switches, and a list of a policy writes texts only';
  return undefined;
}
