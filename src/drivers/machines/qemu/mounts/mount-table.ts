/** A mount, as `/proc/self/mountinfo` of the guest tells it. */
export interface Mount {
  point: string;
  type: string;
  source: string;
  /** Second number of its device, which names the connection of a FUSE file system. */
  minor: number;
}

/** Pure. Lines that are none are left out. */
export function parseMounts(text: string): Mount[] {
  return text.split('\n').flatMap((line) => {
    const [before = '', after = ''] = line.split(' - ');
    const [, , device = '', , point] = before.split(' ');
    const [type, source] = after.split(' ');
    if (point === undefined || type === undefined || source === undefined) return [];
    return [{ point: plain(point), type, source: plain(source), minor: Number(device.split(':')[1]) }];
  });
}

/** Blanks and backslashes stand there as octal numbers. */
function plain(text: string): string {
  return text.replaceAll(/\\([0-7]{3})/g, (_, digits: string) => String.fromCharCode(Number.parseInt(digits, 8)));
}
