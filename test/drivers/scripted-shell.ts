import type { Shell } from '../../src/drivers/shell.ts';
import { RdError } from '../../src/errors.ts';

export const NETWORK = { bridge: 'rd12345678', pool: '10.9.0.0/16', shared: true };
export const PLACES = { id: '12345678', data: '/s/data', run: '/s/run' };

/** A machine in memory. Programs run until they are stopped or `crash` takes them; only containerd's client answers. */
export function scriptedShell() {
  const files = new Map<string, string>();
  const programs = new Map<string, 'running' | 'ended'>();
  const events: string[] = [];
  const left: string[] = [];
  const offers = new Set<string>();
  const logged: object[] = [];
  const tables: { healthy: boolean; stillborn: string; taken: string[] } = { healthy: true, stillborn: '', taken: [] };
  let time = 0;
  const shell: Shell = {
    places: PLACES,
    clock: {
      now: () => time,
      async sleep(ms) {
        time += ms;
      },
    },
    async run(argv) {
      if (!tables.healthy || programs.get('containerd') !== 'running')
        throw new RdError('ERR_DRIVER_FAILED', 'ctr failed');
      const stdout = argv.includes('version') ? 'Client:\n  Version: 1\n\nServer:\n  Version:  1.6.20\n' : '';
      return { exitCode: 0, stdout, stderr: '' };
    },
    stream() {
      throw new RdError('ERR_DRIVER_FAILED', 'nothing here streams');
    },
    async start(started, { before } = {}) {
      if (before) await shell.arrange(before);
      for (const { name } of started) {
        events.push(`start ${name}`);
        programs.set(name, name === tables.stillborn ? 'ended' : 'running');
      }
    },
    async find(name) {
      const state = programs.get(name);
      return state === 'running' ? { state, pid: 1 } : { state: state ?? 'none' };
    },
    async stop(name) {
      if (programs.delete(name)) events.push(`stop ${name}`);
    },
    tail: async () => ['the last words'],
    read: async (path) => files.get(path),
    exists: async (path) => files.has(path),
    async write(path, text) {
      files.set(path, text);
    },
    async remove(path) {
      for (const file of files.keys()) if (file === path || file.startsWith(`${path}/`)) files.delete(file);
    },
    async arrange({ absent, files: placed }) {
      for (const path of absent) await shell.remove(path);
      for (const { path, text } of placed) await shell.write(path, text);
    },
    // Every program with a socket here is a containerd.
    listens: async () => [...programs.values()].includes('running'),
    async copyIn(from, to, mode) {
      events.push(`copy in ${to} ${mode.toString(8)}`);
      files.set(to, from);
    },
    localSocket: async (path) => path,
    hold: async () => undefined,
    holds: async () => false,
    localPort: async () => undefined,
    closePort: async () => undefined,
    async dial(host, port) {
      throw new RdError('ERR_NOT_READY', `nobody answers on ${host}:${port}`);
    },
    log: (_level, message, values) => logged.push({ message, ...values }),
    environment: {},
    async offer(_server, at) {
      const place = 'socket' in at ? at.socket : `port ${at.port || 4000}`;
      if (tables.taken.includes(place)) throw new RdError('ERR_PORT_IN_USE', `${place} is taken`);
      events.push(`offer ${place}`);
      offers.add(place);
      return {
        port: 'socket' in at ? 0 : at.port || 4000,
        async close() {
          offers.delete(place);
        },
      };
    },
    network: async () => NETWORK,
    leftovers: async () => left,
    async clear() {
      events.push('clear');
      left.length = 0;
    },
  };
  const crash = (name: string) => programs.set(name, 'ended');
  return { shell, files, events, left, tables, crash, offers, logged };
}
