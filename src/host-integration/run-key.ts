import { run } from '../process/run.ts';

/** The values below the key that Windows starts at every login; replaced in tests. */
export interface RunKey {
  /** How a value is named to a person. */
  place(name: string): string;
  /** The command of a value, as the console shows it; `undefined` when there is no such value. */
  get(name: string): Promise<string | undefined>;
  set(name: string, command: string): Promise<void>;
  /** Of a value that is there. */
  remove(name: string): Promise<void>;
}

const KEY = 'HKCU\\Software\\Microsoft\\Windows\\CurrentVersion\\Run';

/** The registry, by way of `reg.exe`. Its exit status 1 on a query means that there is no such value. */
export function runKeyWith(execute: typeof run): RunKey {
  return {
    place: (name) => `${KEY}\\${name}`,
    async get(name) {
      const { exitCode, stdout } = await execute(['reg.exe', 'query', KEY, '/v', name], { accept: [0, 1] });
      // `    NAME    REG_SZ    COMMAND`; a value of another kind is somebody else's, and empty for a reader of commands.
      return exitCode === 0 ? (/ REG_SZ +(.*?)\s*$/m.exec(stdout)?.[1] ?? '') : undefined;
    },
    async set(name, command) {
      await execute(['reg.exe', 'add', KEY, '/v', name, '/t', 'REG_SZ', '/d', command, '/f']);
    },
    async remove(name) {
      await execute(['reg.exe', 'delete', KEY, '/v', name, '/f']);
    },
  };
}

export const windowsRunKey: RunKey = runKeyWith(run);
