import type { Access, HostLayout, Life } from './access.ts';

/** Descriptor on which a daemon's wrapper reports the process that it starts. */
const REPORT = '3';
/** Capabilities to read a home that belongs to a user without an account, as in some containers. */
const OF_ROOT = ['CAP_DAC_OVERRIDE'];
/** Capabilities to serve files of several users as their owners expect. */
export const OF_FILES = ['CAP_CHOWN', 'CAP_DAC_OVERRIDE', 'CAP_FOWNER', 'CAP_FSETID'];
/** Files that QEMU and its libraries read to fit the processors and memory of this computer. */
const FACTS = ['/sys/devices/system', '/sys/kernel/mm'];

/**
 * Returns a wrapper that shows a program these files and no others, at the same paths, and neither processes nor rights of this computer. The network
 * is that of this computer. A daemon outlives the wrapper, which stays as its parent; a program that a caller waits for ends with it. Pure.
 */
export function bubblewrap(access: Access, { isRoot, roots, extra }: HostLayout, life: Life): string[] {
  const { reads = [], writes = [], devices = [], shares = [] } = access;
  return [
    'bwrap',
    ...(isRoot ? rights(shares.length > 0 ? OF_FILES : OF_ROOT) : ['--unshare-user']),
    // As the first process of its name space the program is the only child, and gets signals that it handles.
    ...['--unshare-pid', '--as-pid-1', '--unshare-ipc'],
    ...(life === 'run' ? ['--die-with-parent'] : []),
    ...(life === 'daemon' ? ['--info-fd', REPORT] : []),
    ...[...roots].flatMap(([path, link]) =>
      link === undefined ? bindArguments('--ro-bind', path) : ['--symlink', link, path],
    ),
    ...['--proc', '/proc', '--dev', '/dev', '--tmpfs', '/tmp'],
    ...[...FACTS, ...extra].flatMap((path) => bindArguments('--ro-bind-try', path)),
    ...devices.flatMap((path) => bindArguments('--dev-bind-try', path)),
    // Hidden directories are in shares, and files of ours may be in hidden directories.
    ...shares.flatMap(({ real, mode }) => bindArguments(mode === 'read-only' ? '--ro-bind' : '--bind', real)),
    ...shares.flatMap(({ hidden }) => hidden.flatMap((path) => ['--tmpfs', path])),
    ...reads.flatMap((path) => bindArguments('--ro-bind', path)),
    ...writes.flatMap((path) => bindArguments('--bind', path)),
    ...['--chdir', '/', '--'],
  ];
}

function rights(capabilities: readonly string[]): string[] {
  return ['--cap-drop', 'ALL', ...capabilities.flatMap((each) => ['--cap-add', each])];
}

function bindArguments(how: string, path: string): string[] {
  return [how, path, path];
}
