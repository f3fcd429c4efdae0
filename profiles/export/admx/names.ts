import type { Field } from '../../../src/settings/field.ts';
import type { Part } from '../../deployment/part.ts';
import { PART_NAMES } from './policies.ts';

/** The category above all others, and the text of its name. */
export const ROOT = 'RancherDesktop';
export const SUPPORTED_ID = 'SUPPORTED_RancherDesktop';

/** The names of policies and categories are also the ids of their texts; helps have their own. */
export function helpId(name: string): string {
  return `${name}_Help`;
}

/** Has no small letter after the part, which the first name of every setting has. */
export function versionPolicyName(part: Part): string {
  return `${PART_NAMES[part]}_Version`;
}

export function choiceId({ path }: Field, value: string): string {
  return `Choice_${path}_${value}`.replaceAll(/[^A-Za-z0-9]/g, '_');
}

export function stringReference(id: string): string {
  return `$(string.${id})`;
}
