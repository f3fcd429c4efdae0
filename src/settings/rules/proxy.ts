import { isNoproxyEntry } from '../noproxy.ts';
import type { Rule } from './rule.ts';

/** All wrong entries are named in one line. */
export const noproxyList: Rule = ({ field, desired, changed }) => {
  if (!changed || !Array.isArray(desired)) return [];
  const wrong = desired.filter((entry) => typeof entry === 'string' && !isNoproxyEntry(entry));
  if (wrong.length === 0) return [];
  const named = wrong.join('", "');
  const message = `field "${field.path}" has invalid entries (must be IP addresses, CIDR subnets, or domain names): "${named}"`;
  return [{ code: 'format', message, fatal: false, expected: 'IP addresses, CIDR ranges or domain names' }];
};
