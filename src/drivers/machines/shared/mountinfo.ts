/** A mount in `/proc/PID/mountinfo`, see proc_pid_mountinfo(5). */
export interface Mount {
  point: string;
  /** Root of the mount inside its file system. */
  root: string;
  type: string;
  source: string;
  /** The super options, in which overlay names its directories. */
  options: string;
  /** Device number as `MAJOR:MINOR`. */
  device: string;
  /** The minor device number, which identifies a FUSE connection. */
  minor: number;
}

/** Parses the mounts of a process, skipping malformed lines. */
export function parseMounts(text: string): Mount[] {
  return text.split('\n').flatMap((line) => {
    const [before = '', after = ''] = line.split(' - ');
    const [, , device = '', root, point] = before.split(' ');
    const [type, source, options = ''] = after.split(' ').map(unescapeField);
    if (root === undefined || point === undefined || type === undefined || source === undefined) return [];
    const minor = Number(device.split(':')[1]);
    return [{ point: unescapeField(point), root: unescapeField(root), type, source, options, device, minor }];
  });
}

/** Decodes a field: the kernel escapes blanks, tabs, newlines and backslashes as three octal digits. */
function unescapeField(field: string): string {
  return field.replaceAll(/\\([0-7]{3})/g, (_, digits: string) => String.fromCharCode(Number.parseInt(digits, 8)));
}
