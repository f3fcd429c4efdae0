/** A mount in `/proc/self/mountinfo` of the guest. */
export interface Mount {
  point: string;
  type: string;
  source: string;
  /** Minor device number, which identifies a FUSE connection. */
  minor: number;
}

/** Pure. Skips malformed lines. */
export function parseMounts(text: string): Mount[] {
  return text.split('\n').flatMap((line) => {
    const [before = '', after = ''] = line.split(' - ');
    const [, , device = '', , point] = before.split(' ');
    const [type, source] = after.split(' ');
    if (point === undefined || type === undefined || source === undefined) return [];
    return [{ point: plain(point), type, source: plain(source), minor: Number(device.split(':')[1]) }];
  });
}

/** Decodes octal escapes of blanks and backslashes. */
function plain(text: string): string {
  return text.replaceAll(/\\([0-7]{3})/g, (_, digits: string) => String.fromCharCode(Number.parseInt(digits, 8)));
}
