/**
 * Image names, parsed by hand in one pass: a regular expression for this grammar takes exponential time on near
 * matches. Digests are not supported.
 */
export interface ExtensionPattern {
  /** Registry with port, as written; absent for the default registry. */
  registry?: string;
  /** Empty for a whole registry; with a final slash for everything below. */
  name: string;
  tag?: string;
}

/** True for `[registry/]name` without a tag. A registry contains a dot. */
export function isImageName(text: string): boolean {
  return isRepository(splitRegistry(text).rest);
}

/** True for 1 to 128 letters, digits, `_`, `.` and `-`, not starting with `.` or `-`. */
export function isImageTag(text: string): boolean {
  return /^[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}$/.test(text);
}

/** Parses `[registry/]name[:tag]`, where the name may be empty after a registry or end in a slash. */
export function parseExtensionPattern(text: string): ExtensionPattern | undefined {
  const { registry, rest } = splitRegistry(text);
  const colon = rest.indexOf(':');
  const name = colon === -1 ? rest : rest.slice(0, colon);
  const tag = colon === -1 ? undefined : rest.slice(colon + 1);
  if (tag !== undefined && !isImageTag(tag)) return undefined;
  const stem = name.endsWith('/') ? name.slice(0, -1) : name;
  const whole = name === '' && registry !== undefined;
  if (!whole && !isRepository(stem)) return undefined;
  return { ...(registry === undefined ? {} : { registry }), name, ...(tag === undefined ? {} : { tag }) };
}

function splitRegistry(text: string): { registry?: string; rest: string } {
  const slash = text.indexOf('/');
  const head = slash === -1 ? '' : text.slice(0, slash);
  return isRegistry(head) ? { registry: head, rest: text.slice(slash + 1) } : { rest: text };
}

/** Two or more labels, and a port up to 65535. */
function isRegistry(text: string): boolean {
  const [host = '', port, ...more] = text.split(':');
  if (more.length > 0 || (port !== undefined && !(/^\d{1,5}$/.test(port) && Number(port) <= 65535))) return false;
  const labels = host.split('.');
  return labels.length > 1 && labels.every(isLabel);
}

function isLabel(label: string): boolean {
  return /^[A-Za-z0-9-]+$/.test(label) && !label.startsWith('-') && !label.endsWith('-');
}

function isRepository(text: string): boolean {
  return text !== '' && text.split('/').every(isComponent);
}

/** Runs of lowercase letters and digits separated by a dot, one or two underscores, or hyphens. */
function isComponent(text: string): boolean {
  let index = 0;
  for (;;) {
    const end = runEnd(text, index, isLowerOrDigit);
    if (end === index) return false;
    if (end === text.length) return true;
    index = separatorEnd(text, end);
    if (index === end) return false;
  }
}

function separatorEnd(text: string, start: number): number {
  const sign = text[start];
  if (sign === '.') return start + 1;
  if (sign === '_') return start + (text[start + 1] === '_' ? 2 : 1);
  return runEnd(text, start, (code) => code === 0x2d);
}

function runEnd(text: string, start: number, member: (code: number) => boolean): number {
  let end = start;
  while (end < text.length && member(text.charCodeAt(end))) end += 1;
  return end;
}

function isLowerOrDigit(code: number): boolean {
  return (code >= 0x61 && code <= 0x7a) || (code >= 0x30 && code <= 0x39);
}
