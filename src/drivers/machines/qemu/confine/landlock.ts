import type { Access, HostLayout } from './access.ts';
import { OF_FILES } from './bubblewrap.ts';

/** Rights on files; a rule for a file accepts no others. */
const READ = 'execute,read-file';
const WRITE = 'read-file,write-file,truncate';
const READ_BELOW = `${READ},read-dir`;
const WRITE_BELOW = `${READ_BELOW},write-file,truncate,remove-dir,remove-file,make-dir,make-reg,make-sock,make-fifo,make-sym,refer`;
const DEVICES = ['/dev/null', '/dev/zero', '/dev/full', '/dev/random', '/dev/urandom'];

/**
 * Returns a wrapper that lets a program open these files and no others. Weaker than `bubblewrap`: the program sees names, processes and sockets, and
 * nothing in a share is hidden. The wrapper executes the program in its own process. Pure.
 * @param isDirectory true for a directory in `access`.
 */
export function landlock(
  access: Access,
  { isRoot, roots, extra }: HostLayout,
  isDirectory: (path: string) => boolean,
): string[] {
  const { reads = [], writes = [], devices = [], shares = [] } = access;
  const reading = (path: string) => rule(isDirectory(path) ? READ_BELOW : READ, path);
  const writing = (path: string) => rule(isDirectory(path) ? WRITE_BELOW : WRITE, path);
  return [
    ...['setpriv', '--no-new-privs'],
    ...(isRoot ? ['--inh-caps=-all', `--bounding-set=${rightsOfRoot(shares.length > 0)}`] : []),
    ...['--landlock-access', 'fs'],
    ...[...roots.keys(), '/proc', '/sys', ...extra].flatMap(reading),
    ...[...DEVICES, ...devices].flatMap((path) => rule(WRITE, path)),
    ...shares.flatMap(({ real, mode }) => rule(mode === 'read-only' ? READ_BELOW : WRITE_BELOW, real)),
    ...reads.flatMap(reading),
    ...writes.flatMap(writing),
    '--',
  ];
}

function rightsOfRoot(servesFiles: boolean): string {
  const kept = servesFiles ? OF_FILES : ['CAP_DAC_OVERRIDE'];
  return ['-all', ...kept.map((each) => `+${each.slice('CAP_'.length).toLowerCase()}`)].join(',');
}

function rule(rights: string, path: string): string[] {
  return ['--landlock-rule', `path-beneath:${rights}:${path}`];
}
