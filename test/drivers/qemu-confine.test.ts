import { expect, test } from 'vitest';
import {
  type Access,
  type HostLayout,
  placesOf,
  resolverPlace,
} from '../../src/drivers/machines/qemu/confine/access.ts';
import { bubblewrap } from '../../src/drivers/machines/qemu/confine/bubblewrap.ts';
import { landlock } from '../../src/drivers/machines/qemu/confine/landlock.ts';

const LAYOUT: HostLayout = {
  isRoot: false,
  roots: new Map([
    ['/usr', undefined],
    ['/lib', 'usr/lib'],
  ]),
  extra: ['/run/systemd/resolve'],
};
const SHARE = { real: '/home/u', mode: 'writable', hidden: ['/home/u/.rdctl'] } as const;
const ACCESS: Access = {
  reads: ['/images/disk'],
  writes: ['/home/u/.rdctl/data', '/home/u/.rdctl/run'],
  devices: ['/dev/kvm'],
};
const directories = new Set(['/home/u/.rdctl/run', '/home/u', '/usr', '/lib', '/proc', '/sys', '/run/systemd/resolve']);
const isDirectory = (path: string) => directories.has(path);

test('bubblewrap shows the system, the files of the machine, and nothing else', () => {
  expect(bubblewrap(ACCESS, LAYOUT, 'run').join(' ')).toBe(
    [
      'bwrap --unshare-user --unshare-pid --as-pid-1 --unshare-ipc --die-with-parent',
      '--ro-bind /usr /usr --symlink usr/lib /lib --proc /proc --dev /dev --tmpfs /tmp',
      '--ro-bind-try /sys/devices/system /sys/devices/system --ro-bind-try /sys/kernel/mm /sys/kernel/mm',
      '--ro-bind-try /run/systemd/resolve /run/systemd/resolve --dev-bind-try /dev/kvm /dev/kvm',
      '--ro-bind /images/disk /images/disk',
      '--bind /home/u/.rdctl/data /home/u/.rdctl/data --bind /home/u/.rdctl/run /home/u/.rdctl/run --chdir / --',
    ].join(' '),
  );
});

test('a daemon outlives its bubblewrap, which reports its process; what a caller waits for does not', () => {
  const [daemon, partner, run] = (['daemon', 'partner', 'run'] as const).map((life) =>
    bubblewrap({}, LAYOUT, life).join(' '),
  );
  for (const each of [daemon, partner]) expect(each).not.toContain('--die-with-parent');
  expect(daemon).toContain('--info-fd 3');
  expect(partner).not.toContain('--info-fd');
  expect(run).toContain('--die-with-parent');
});

test('what is hidden in a shared directory is hidden from its server, but for the files that the program needs itself', () => {
  const words = bubblewrap({ ...ACCESS, shares: [SHARE] }, LAYOUT, 'daemon').join(' ');
  const order = ['--bind /home/u /home/u', '--tmpfs /home/u/.rdctl', '--bind /home/u/.rdctl/data'];
  const places = order.map((part) => words.indexOf(part));
  expect(places).toEqual([...places].sort((one, other) => one - other));
  expect(places).not.toContain(-1);
  expect(bubblewrap({ shares: [{ ...SHARE, mode: 'read-only' }] }, LAYOUT, 'partner').join(' ')).toContain(
    '--ro-bind /home/u /home/u',
  );
});

test('root keeps only the rights that serving files takes', () => {
  const root = { ...LAYOUT, isRoot: true };
  const added = (words: readonly string[]) => words.filter((_, index) => words[index - 1] === '--cap-add');
  expect(bubblewrap({}, root, 'run').join(' ')).toContain('--cap-drop ALL --cap-add CAP_DAC_OVERRIDE --unshare-pid');
  expect(added(bubblewrap({ shares: [SHARE] }, root, 'partner'))).toEqual([
    'CAP_CHOWN',
    'CAP_DAC_OVERRIDE',
    'CAP_FOWNER',
    'CAP_FSETID',
  ]);
  const without = (access: Access) => landlock(access, root, isDirectory).find((word) => word.startsWith('--bounding'));
  expect(without({})).toBe('--bounding-set=-all,+dac_override');
  expect(without({ shares: [SHARE] })).toBe('--bounding-set=-all,+chown,+dac_override,+fowner,+fsetid');
});

test('landlock opens the same files; a rule for a file has no rights of a directory', () => {
  const words = landlock({ ...ACCESS, shares: [SHARE] }, LAYOUT, isDirectory);
  expect(words.slice(0, 4)).toEqual(['setpriv', '--no-new-privs', '--landlock-access', 'fs']);
  expect(words.at(-1)).toBe('--');
  const rights = new Map(
    words.flatMap((word) => {
      const [, allowed, path] = /^path-beneath:([^:]*):(.*)$/.exec(word) ?? [];
      return path === undefined ? [] : [[path, allowed?.split(',')]];
    }),
  );
  expect(rights.get('/images/disk')).toEqual(['execute', 'read-file']);
  expect(rights.get('/home/u/.rdctl/data')).toEqual(['read-file', 'write-file', 'truncate']);
  expect(rights.get('/home/u/.rdctl/run')).toContain('make-sock');
  expect(rights.get('/usr')).toEqual(['execute', 'read-file', 'read-dir']);
  expect(rights.get('/dev/kvm')).toContain('write-file');
  expect(rights.get('/home/u')).toContain('make-dir');
  expect(rights.has('/')).toBe(false);
});

test('of a program elsewhere its directory is shown, and never the one above it as a whole', async () => {
  expect(await placesOf(['/usr/bin/qemu-system-x86_64', '/usr/local/bin/qemu-img'])).toEqual([]);
  expect(await placesOf(['/home/u/.local/bin/qemu', '/home/u/.local/bin/qemu'])).toEqual(['/home/u/.local/bin']);
  expect(await placesOf(['/nix/store/0-qemu/bin/qemu'])).toEqual([]);
});

test('the name servers stay current when their file is replaced', () => {
  expect(resolverPlace(undefined)).toEqual([]);
  expect(resolverPlace('/etc/resolv.conf')).toEqual([]);
  expect(resolverPlace('/run/systemd/resolve/stub-resolv.conf')).toEqual(['/run/systemd/resolve']);
  expect(resolverPlace('/run/resolv.conf')).toEqual(['/run/resolv.conf']);
  expect(resolverPlace('/mnt/wsl/resolv.conf')).toEqual(['/mnt/wsl/resolv.conf']);
});
