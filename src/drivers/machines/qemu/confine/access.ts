import { readlink, stat } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import type { RunOptions, RunResult } from '../../../../os/run.ts';
import type { Share } from '../mounts/directories.ts';

/** The files that a confined program may open besides the programs and libraries of this computer. All paths are absolute. */
export interface Access {
  reads?: readonly string[];
  /** Files, which are created empty if missing, and directories. */
  writes?: readonly string[];
  devices?: readonly string[];
  /** Directories of the user that the program serves to a guest. */
  shares?: readonly Pick<Share, 'real' | 'mode' | 'hidden'>[];
}

/** The lifetime of a confined program: as long as its caller waits, or until it is stopped. */
export type Life = 'run' | 'daemon' | 'partner';

/** Runs a program to completion, confined if it has an `access`. */
export type ConfinedRun = (argv: readonly string[], options?: RunOptions & { access?: Access }) => Promise<RunResult>;

/** Facts of this computer that a wrapper needs. */
export interface HostLayout {
  isRoot: boolean;
  /** Directories of programs and libraries at the root, by path: the target of a link, or undefined for a directory. */
  roots: ReadonlyMap<string, string | undefined>;
  /** Directories and files outside them that programs need: those of name resolution, and of programs installed elsewhere. */
  extra: readonly string[];
}

/** Programs, libraries, and configuration such as the name servers. */
const ROOTS = ['/usr', '/etc', '/bin', '/sbin', '/lib', '/lib32', '/lib64', '/libx32', '/nix/store', '/gnu/store'];
/** Names that may accompany a program in the directory beside that of the programs. Never all of it: that may be `~/.local`. */
const BESIDE = ['lib', 'lib64', 'libexec', 'share/qemu', 'share/qemu-firmware', 'share/seabios'];

export async function rootsOf(paths: readonly string[] = ROOTS): Promise<HostLayout['roots']> {
  const found = await Promise.all(
    paths.map(async (path): Promise<[string, string | undefined][]> => {
      const link = await readlink(path).catch(() => undefined);
      return link !== undefined || (await isThere(path)) ? [[path, link]] : [];
    }),
  );
  return new Map(found.flat());
}

/**
 * Returns the directories of a program outside of the system's directories, and the files it needs beside them.
 * @param found its path, and its path without links.
 */
export async function placesOf(found: readonly string[]): Promise<string[]> {
  const folders = [...new Set(found.filter((path) => !isBelow(path, ROOTS)).map((path) => dirname(path)))];
  const beside = folders
    .filter((folder) => basename(folder) === 'bin')
    .flatMap((folder) => {
      return BESIDE.map((name) => join(dirname(folder), name));
    });
  const there = await Promise.all(beside.map(isThere));
  return [...folders, ...beside.filter((_, index) => there[index])];
}

/**
 * Returns the places to show so that the file of name servers is current. Programs that maintain it replace it, so its directory is shown, unless
 * that holds much more. Pure.
 */
export function resolverPlace(real: string | undefined): string[] {
  if (real === undefined || isBelow(real, ROOTS)) return [];
  const folder = dirname(real);
  return [folder.startsWith('/run/') ? folder : real];
}

function isBelow(path: string, folders: readonly string[]): boolean {
  return folders.some((folder) => path.startsWith(`${folder}/`));
}

async function isThere(path: string): Promise<boolean> {
  return stat(path).then(
    () => true,
    () => false,
  );
}
