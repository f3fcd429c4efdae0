import { readdir, readFile, readlink } from 'node:fs/promises';
import { defined } from '../json.ts';

/** A socket that uses a port of this host, and its program. */
export interface PortHolder {
  /** The local address, such as `127.0.0.1` or `::`. */
  address: string;
  uid: number;
  /** Absent if the system does not show the process to this user. */
  program?: { name: string; pid: number };
}

/** A line of the kernel's tables: index, local, remote, state, queues, timer, retransmits, uid, timeout, inode. */
const LINE = /^\s*\d+: ([0-9A-F]+):([0-9A-F]{4}) [0-9A-F]+:[0-9A-F]{4} ([0-9A-F]{2}) \S+ \S+ \S+ +(\d+) +\d+ (\d+)/gm;
/** LISTEN of TCP; UDP has only one state without a peer. */
const STATES = { tcp: '0A', udp: '07' } as const;

/**
 * Returns a function that finds the program that listens on a port of this host. Linux only: undefined elsewhere, and if nothing listens. Finding the
 * process takes a look at the open files of all processes, so the last answer is kept as long as the socket is the same.
 * @param proc the path of the kernel's tables; replaced in tests.
 */
export function portHolders(proc = '/proc') {
  const known = new Map<string, { inode: string; holder: PortHolder }>();
  return async ({ protocol, port }: { protocol: 'tcp' | 'udp'; port: number }): Promise<PortHolder | undefined> => {
    const key = `${protocol} ${port}`;
    const [socket] = await socketsOn(proc, protocol, port);
    if (socket === undefined) {
      known.delete(key);
      return undefined;
    }
    const { inode, ...rest } = socket;
    const before = known.get(key);
    if (before?.inode === inode) return before.holder;
    const program = await programOf(proc, inode);
    const holder = { ...rest, ...defined({ program }) };
    known.set(key, { inode, holder });
    return holder;
  };
}

async function socketsOn(proc: string, protocol: 'tcp' | 'udp', port: number) {
  const tables = await Promise.all(
    [protocol, `${protocol}6`].map((name) => readFile(`${proc}/net/${name}`, 'latin1').catch(() => '')),
  );
  return tables.flatMap((text) =>
    [...text.matchAll(LINE)].flatMap(([, local = '', hex = '', state, uid, inode = '']) =>
      Number.parseInt(hex, 16) === port && state === STATES[protocol]
        ? [{ address: addressText(local), uid: Number(uid), inode }]
        : [],
    ),
  );
}

async function programOf(proc: string, inode: string): Promise<PortHolder['program']> {
  const pids = (await readdir(proc).catch(() => [])).filter((name) => /^\d+$/.test(name));
  for (const pid of pids) {
    // The files of other users are not shown, and processes may end meanwhile.
    const files = await readdir(`${proc}/${pid}/fd`).catch(() => []);
    for (const file of files) {
      if ((await readlink(`${proc}/${pid}/fd/${file}`).catch(() => '')) !== `socket:[${inode}]`) continue;
      const name = (await readFile(`${proc}/${pid}/comm`, 'utf8').catch(() => '')).trim();
      return { name: name || 'a program', pid: Number(pid) };
    }
  }
  return undefined;
}

/** Formats an address. The kernel prints words of four bytes, each in the byte order of the processor: little-endian. */
function addressText(hex: string): string {
  const bytes = (hex.match(/.{8}/g) ?? []).flatMap((word) => (word.match(/../g) ?? []).reverse());
  const numbers = bytes.map((byte) => Number.parseInt(byte, 16));
  const mapped = hex.startsWith('0000000000000000FFFF0000');
  if (numbers.length === 4 || mapped) return numbers.slice(-4).join('.');
  if (numbers.slice(0, 15).every((byte) => byte === 0)) return numbers[15] === 0 ? '::' : `::${numbers[15]}`;
  return bytes.join('').toLowerCase().match(/.{4}/g)?.join(':') ?? hex;
}
