import { isIP } from 'node:net';

const LONGEST_DOMAIN = 253;
const LONGEST_LABEL = 63;

/**
 * True for an IP address, a CIDR range (host bits may be set) or a domain name with an optional `*.` or `.` in front.
 * White space is not trimmed.
 */
export function isNoproxyEntry(text: string): boolean {
  return isAddress(text) || isDomain(text);
}

function isAddress(text: string): boolean {
  const slash = text.indexOf('/');
  const version = isIP(slash === -1 ? text : text.slice(0, slash));
  if (version === 0 || slash === -1) return version !== 0;
  const prefix = text.slice(slash + 1);
  return /^\d+$/.test(prefix) && Number(prefix) <= (version === 4 ? 32 : 128);
}

function isDomain(text: string): boolean {
  const name = text.startsWith('*.') ? text.slice(2) : text.startsWith('.') ? text.slice(1) : text;
  if (name.length > LONGEST_DOMAIN || isIP(name) !== 0) return false;
  return name.split('.').every(isLabel);
}

function isLabel(label: string): boolean {
  return (
    label.length <= LONGEST_LABEL && /^[A-Za-z0-9-]+$/.test(label) && !label.startsWith('-') && !label.endsWith('-')
  );
}
