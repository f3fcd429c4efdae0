import { execFileSync } from 'node:child_process';
import {
  chmodSync,
  chownSync,
  linkSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { beforeEach, describe, expect, test } from 'vitest';
import { type EditOperations, editOperations, editUserFile } from '../../../src/features/host-integration/user-file.ts';
import { temporaryDirectory } from '../../helpers/temp-home.ts';

const NOBODY = 65534;

let home: string;
let file: string;
beforeEach(() => {
  home = temporaryDirectory();
  file = join(home, '.bashrc');
});

const append = (text: string | undefined) => `${text ?? ''}added\n`;
const edit = (path = file, operations?: EditOperations) =>
  editUserFile(path, append, { within: [home], ...(operations ? { operations } : {}) });

function noSpace(): never {
  throw Object.assign(new Error('ENOSPC: no space left on device'), { code: 'ENOSPC' });
}

describe('an edit', () => {
  test('keeps mode, owner and extended attributes', async () => {
    writeFileSync(file, 'mine\n');
    chmodSync(file, 0o754);
    const hasAttributes = setAttribute(file);
    expect(await edit()).toBe(true);
    expect(readFileSync(file, 'utf8')).toBe('mine\nadded\n');
    expect(statSync(file).mode & 0o7777).toBe(0o754);
    if (hasAttributes) expect(attribute(file)).toBe('kept');
  });

  test('keeps every byte outside its change', async () => {
    const bytes = Buffer.from([0xff, 0x00, 0xc3, 0x28, 0x0a]);
    writeFileSync(file, bytes);
    await edit();
    expect(readFileSync(file)).toEqual(Buffer.concat([bytes, Buffer.from('added\n')]));
  });

  test('that changes nothing does not write', async () => {
    writeFileSync(file, 'mine\n');
    const before = statSync(file, { bigint: true });
    expect(await editUserFile(file, (text) => text, { within: [home] })).toBe(false);
    const after = statSync(file, { bigint: true });
    expect([after.ino, after.mtimeNs]).toEqual([before.ino, before.mtimeNs]);
    expect(await editUserFile(join(home, 'none'), () => undefined, { within: [home] })).toBe(false);
    expect(readdirSync(home)).toEqual(['.bashrc']);
  });

  test('changes the target of a link, and keeps the link', async () => {
    mkdirSync(join(home, 'dotfiles'));
    const target = join(home, 'dotfiles', 'bashrc');
    writeFileSync(target, 'mine\n');
    symlinkSync('dotfiles/bashrc', file);
    await edit();
    expect(lstatSync(file).isSymbolicLink()).toBe(true);
    expect(readFileSync(target, 'utf8')).toBe('mine\nadded\n');
    expect(readdirSync(join(home, 'dotfiles'))).toEqual(['bashrc']);
  });

  test('changes a file in a directory that is a link inside the home', async () => {
    mkdirSync(join(home, 'dotfiles', 'docker'), { recursive: true });
    symlinkSync('dotfiles/docker', join(home, '.docker'));
    writeFileSync(join(home, 'dotfiles', 'docker', 'config.json'), 'mine\n');
    await edit(join(home, '.docker', 'config.json'));
    await edit(join(home, '.docker', 'new'));
    expect(lstatSync(join(home, '.docker')).isSymbolicLink()).toBe(true);
    expect(readFileSync(join(home, 'dotfiles', 'docker', 'config.json'), 'utf8')).toBe('mine\nadded\n');
    expect(readdirSync(join(home, 'dotfiles', 'docker')).sort()).toEqual(['config.json', 'new']);
  });

  test('changes a file in a directory that links out of the home, when the user owns all of it', async () => {
    const elsewhere = temporaryDirectory();
    writeFileSync(join(elsewhere, 'config'), 'mine\n');
    symlinkSync(elsewhere, join(home, '.config'));
    expect(await edit(join(home, '.config', 'config'))).toBe(true);
    expect(await edit(join(home, '.config', 'new'))).toBe(true);
    expect(readFileSync(join(elsewhere, 'config'), 'utf8')).toBe('mine\nadded\n');
    expect(readFileSync(join(elsewhere, 'new'), 'utf8')).toBe('added\n');
    expect(lstatSync(join(home, '.config')).isSymbolicLink()).toBe(true);
  });

  test('removes leftovers of a killed edit, and nothing else', async () => {
    writeFileSync(file, 'mine\n');
    writeFileSync(join(home, '..bashrc.0123456789ab.tmp'), 'half');
    writeFileSync(join(home, '.bashrc.tmp'), 'of somebody');
    await edit();
    expect(readdirSync(home).sort()).toEqual(['.bashrc', '.bashrc.tmp']);
  });
});

describe('is refused, and the file unchanged, for', () => {
  const untouched = async (path: string, why: string | RegExp) => {
    await expect(edit(path)).rejects.toMatchObject({ code: 'ERR_IO', message: expect.stringMatching(why) });
    expect(readdirSync(home).filter((name) => name.endsWith('.tmp'))).toEqual([]);
  };

  test('a link loop', async () => {
    symlinkSync('.other', file);
    symlinkSync('.bashrc', join(home, '.other'));
    await untouched(file, 'leads in a circle');
  });

  test('a dangling link', async () => {
    symlinkSync('gone', file);
    await untouched(file, 'dangling symbolic link');
  });

  test('a link out of the home directory', async () => {
    const elsewhere = join(temporaryDirectory(), 'shared');
    writeFileSync(elsewhere, 'of all\n');
    symlinkSync(elsewhere, file);
    await untouched(file, 'outside of the home directory');
    expect(readFileSync(elsewhere, 'utf8')).toBe('of all\n');
  });

  test('a link to a read-only file, also for root', async () => {
    writeFileSync(join(home, 'dotfile'), 'mine\n', { mode: 0o444 });
    symlinkSync('dotfile', file);
    await untouched(file, 'which is read-only');
    expect(readFileSync(file, 'utf8')).toBe('mine\n');
  });

  test('a directory, a pipe, a file with hard links, and one that is too large', async () => {
    mkdirSync(join(home, 'directory'));
    await untouched(join(home, 'directory'), 'is not a file');
    execFileSync('python3', ['-c', 'import os,sys; os.mkfifo(sys.argv[1])', join(home, 'pipe')]);
    await untouched(join(home, 'pipe'), 'is not a file');
    writeFileSync(file, 'mine\n');
    linkSync(file, join(home, 'second'));
    await untouched(file, 'second name');
    const large = join(home, 'large');
    writeFileSync(large, '');
    truncateSync(large, 5 * 1024 * 1024);
    await untouched(large, 'larger than');
  });

  test('a read-only file, in our words', async () => {
    writeFileSync(file, 'mine\n', { mode: 0o444 });
    await asUser([home, file], () => untouched(file, `could not write ${file}: permission denied`));
  });

  test('a world-writable file, and one below a world-writable directory', async () => {
    writeFileSync(file, 'mine\n');
    chmodSync(file, 0o666);
    await untouched(file, `${file} can be written by other users`);
    chmodSync(file, 0o644);
    chmodSync(home, 0o777);
    await untouched(file, `${home} can be written by other users`);
    await untouched(join(home, 'new'), `${home} can be written by other users`);
    chmodSync(home, 0o700);
    expect(readFileSync(file, 'utf8')).toBe('mine\n');
  });

  test('a link through a world-writable directory, which could point elsewhere later', async () => {
    const shared = join(home, 'shared');
    mkdirSync(shared);
    writeFileSync(join(home, 'target'), 'mine\n');
    symlinkSync('../target', join(shared, 'link'));
    symlinkSync('shared/link', file);
    await edit();
    chmodSync(shared, 0o777);
    await untouched(file, `${shared} can be written by other users`);
    expect(readFileSync(join(home, 'target'), 'utf8')).toBe('mine\nadded\n');
  });

  test('a file in a directory that links to a place others can write', async () => {
    const elsewhere = temporaryDirectory();
    writeFileSync(join(elsewhere, 'config'), 'of somebody\n');
    chmodSync(elsewhere, 0o777);
    symlinkSync(elsewhere, join(home, '.kube'));
    await untouched(join(home, '.kube', 'config'), `${elsewhere} can be written by other users`);
    await untouched(join(home, '.kube', 'new'), `${elsewhere} can be written by other users`);
    expect(readFileSync(join(elsewhere, 'config'), 'utf8')).toBe('of somebody\n');
    expect(readdirSync(elsewhere)).toEqual(['config']);
  });

  test('a file that changes during the edit', async () => {
    writeFileSync(file, 'mine\n');
    const operations = {
      ...editOperations,
      async copy(from: string, to: string) {
        await editOperations.copy(from, to);
        writeFileSync(from, 'changed meanwhile\n');
      },
    };
    await expect(edit(file, operations)).rejects.toThrow('another program is changing it');
    expect(readFileSync(file, 'utf8')).toBe('changed meanwhile\n');
    expect(readdirSync(home)).toEqual(['.bashrc']);
  });

  test('a file that changes before it would be removed', async () => {
    writeFileSync(file, 'ours\n');
    const change = () => {
      writeFileSync(file, 'changed meanwhile\n');
      return undefined;
    };
    await expect(editUserFile(file, change, { within: [home] })).rejects.toThrow('another program is changing it');
    expect(readFileSync(file, 'utf8')).toBe('changed meanwhile\n');
  });
});

test('a failed copy reports the system error, not the output of a program', async () => {
  writeFileSync(file, 'mine\n');
  await expect(editOperations.copy(file, join(home, 'none', 'x'))).rejects.toMatchObject({ code: 'ENOENT' });
});

describe.each(['copy', 'write', 'rename'] as const)('on a full disk at %s', (step) => {
  test('an existing file stays, and no temporary file is left', async () => {
    writeFileSync(file, 'mine\n');
    await expect(edit(file, { ...editOperations, [step]: async () => noSpace() })).rejects.toMatchObject({
      message: expect.stringContaining('no space left'),
      advice: 'Free some space there and try again.',
    });
    expect(readFileSync(file, 'utf8')).toBe('mine\n');
    expect(readdirSync(home)).toEqual(['.bashrc']);
  });

  test('a new file is not created', async () => {
    // A new file needs no copy.
    const full = step === 'copy' ? 'write' : step;
    await expect(edit(file, { ...editOperations, [full]: async () => noSpace() })).rejects.toThrow('no space left');
    expect(readdirSync(home)).toEqual([]);
  });
});

test('a directory that accepts no new files is reported', async () => {
  // Not even root can create files there.
  await expect(edit('/proc/self/fd/.bashrc')).rejects.toMatchObject({ code: 'ERR_IO' });
});

/** Root can write anything, so this runs as `nobody`, who is given the paths. */
async function asUser(paths: readonly string[], work: () => Promise<void>): Promise<void> {
  if (process.geteuid?.() !== 0) return work();
  for (const path of paths) chownSync(path, NOBODY, NOBODY);
  process.seteuid?.(NOBODY);
  try {
    await work();
  } finally {
    process.seteuid?.(0);
  }
}

function setAttribute(path: string): boolean {
  try {
    execFileSync('python3', ['-c', 'import os,sys; os.setxattr(sys.argv[1], "user.rdctl", b"kept")', path], {
      stdio: 'ignore',
    });
    return true;
  } catch {
    // This file system does not support them.
    return false;
  }
}

function attribute(path: string): string {
  const program = 'import os,sys; sys.stdout.write(os.getxattr(sys.argv[1], "user.rdctl").decode())';
  return execFileSync('python3', ['-c', program, path], { encoding: 'utf8' });
}
