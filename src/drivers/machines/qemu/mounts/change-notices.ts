import type { BigIntStats } from 'node:fs';
import { lstat, open } from 'node:fs/promises';
import { dirname } from 'node:path';
import type { Duplex } from 'node:stream';
import type { Clock } from '../../../../os/clock.ts';
import type { Connection } from '../guest.ts';
import { isWithin, type Share } from './directories.ts';
import { NOTICE_SCRIPT } from './guest-scripts.ts';
import { type TreeWatch, watchTree } from './tree-watch.ts';

/** Programs save a file in several steps. */
const BATCH_MS = 100;
/** Paths in a batch; of a larger one, only the directories are reported, because each report takes a round trip in the guest. */
const MOST_PATHS = 1_024;
/** Maximum number of paths whose last report is remembered. A forgotten one is reported once more at most. */
const MOST_KNOWN = 65_536;

/** Reports changes of files on this host to watchers (inotify) in the guest, which otherwise see only changes that the guest made. */
export interface ChangeNotices {
  /** Watches exactly these shares from now on. */
  follow(shares: readonly Share[]): void;
  /** Describes the changes that are not reported, as a clause; undefined if there are none. */
  flaw(): string | undefined;
  stop(): void;
}

export interface ChangeNoticesParts {
  guest: Pick<Connection, 'converse'>;
  clock: Pick<Clock, 'sleep'>;
}

/**
 * Creates the reports. The guest sets the owner of a changed file to its current owner, which watchers see as a change of its attributes. That
 * changes neither contents nor times; it is a change on this host too, recognized because nothing differs from before.
 */
export function changeNotices({ guest, clock }: ChangeNoticesParts): ChangeNotices {
  const trees = new Map<string, { share: Share; tree: TreeWatch; flaw?: string }>();
  const known = new Map<string, string>();
  const pending = new Set<string>();
  let line: Duplex | undefined;
  let isFlushing = false;

  function changed(path: string): void {
    pending.add(path);
    if (isFlushing) return;
    isFlushing = true;
    flush().finally(() => {
      isFlushing = false;
    });
  }

  async function flush(): Promise<void> {
    while (pending.size > 0 && trees.size > 0) {
      await clock.sleep(BATCH_MS);
      const paths = [...pending];
      pending.clear();
      const targets = new Map<string, bigint>();
      const isLarge = paths.length > MOST_PATHS;
      for (const path of isLarge ? new Set(paths.map((each) => dirname(each))) : paths) {
        const target = await targetOf(path, isLarge);
        if (target !== undefined) targets.set(target.path, target.uid);
      }
      if (targets.size > 0) await send(targets);
    }
  }

  /** Returns the file or directory to report for a path; undefined if that has been reported, unless it is to be reported again. */
  async function targetOf(path: string, again = false): Promise<{ path: string; uid: bigint } | undefined> {
    const found = [...trees.values()].find(({ share }) => isWithin(path, share.real));
    if (found === undefined) return undefined;
    const { share, tree } = found;
    const facts = await lstat(path, { bigint: true }).catch(() => undefined);
    if (facts === undefined || !(await canBeReported(path, facts))) {
      if (facts === undefined) tree.remove(path);
      known.delete(path);
      return path === share.real ? undefined : targetOf(dirname(path), again);
    }
    if (facts.isDirectory()) await tree.add(path);
    const signature = `${facts.ino} ${facts.mode} ${facts.size} ${facts.mtimeNs}`;
    if (known.get(path) === signature && !again) return undefined;
    known.delete(path);
    known.set(path, signature);
    const [oldest] = known.keys();
    if (known.size > MOST_KNOWN && oldest !== undefined) known.delete(oldest);
    return { path, uid: facts.uid };
  }

  async function send(targets: ReadonlyMap<string, bigint>): Promise<void> {
    if (line === undefined || line.destroyed || !line.writable) {
      line = await guest.converse(['sh', '-c', NOTICE_SCRIPT]).catch(() => undefined);
      line?.resume();
    }
    const text = [...targets].map(([path, uid]) => `${uid} ${encodePath(path)}\n`).join('');
    line?.write(text);
  }

  function stop(): void {
    for (const { tree } of trees.values()) tree.close();
    trees.clear();
    pending.clear();
    known.clear();
    line?.destroy();
    line = undefined;
  }

  return {
    follow(shares) {
      for (const [id, { share, tree }] of trees) {
        if (shares.some((other) => other.id === id && other.hidden.join() === share.hidden.join())) continue;
        tree.close();
        trees.delete(id);
      }
      for (const share of shares) {
        if (trees.has(share.id)) continue;
        const { real: root, hidden } = share;
        const failed = (why: string) => {
          const entry = trees.get(share.id);
          if (entry) entry.flaw = `not every change in ${share.path} is reported to the machine: ${why}`;
        };
        const tree = watchTree({ root, hidden, changed, failed });
        trees.set(share.id, { share, tree });
        void tree.add(root);
      }
      if (trees.size === 0) stop();
    },
    flaw: () => [...trees.values()].find(({ flaw }) => flaw !== undefined)?.flaw,
    stop,
  };
}

/**
 * True if setting the owner is safe and visible: it takes set-user-ID bits and capabilities from programs, and a symbolic link has no watchers. Other
 * files are reported as a change of their directory.
 */
async function canBeReported(path: string, facts: BigIntStats): Promise<boolean> {
  if (facts.isDirectory()) return true;
  if (!facts.isFile() || (facts.mode & 0o6000n) !== 0n) return false;
  return (facts.mode & 0o111n) === 0n || !(await isProgram(path));
}

/** True for a file in the format of programs; scripts have no capabilities. An unreadable file may be one. */
async function isProgram(path: string): Promise<boolean> {
  try {
    const file = await open(path);
    try {
      const { buffer } = await file.read(Buffer.alloc(4), 0, 4, 0);
      return buffer.toString('latin1') === '\x7fELF';
    } finally {
      await file.close();
    }
  } catch {
    return true;
  }
}

/** Encodes a path for a line of text. */
function encodePath(path: string): string {
  return [...Buffer.from(path)]
    .map((byte) =>
      byte > 0x20 && byte < 0x7f && byte !== 0x25
        ? String.fromCharCode(byte)
        : `%${byte.toString(16).padStart(2, '0')}`,
    )
    .join('');
}
