import { run } from '../process/run.ts';

/** The values below the key that Windows starts at every login; replaced in tests. */
export interface RunKey {
  /** How a value is named to a person. */
  place(name: string): string;
  set(name: string, command: string): Promise<void>;
  /** Does nothing when there is no such value. */
  remove(name: string): Promise<void>;
}

const KEY = 'HKCU\\Software\\Microsoft\\Windows\\CurrentVersion\\Run';

/** The registry, by way of `reg.exe`. Its exit status 1 on a removal means that there is nothing to remove. */
export function runKeyWith(execute: typeof run): RunKey {
  return {
    place: (name) => `${KEY}\\${name}`,
    async set(name, command) {
      await execute(['reg.exe', 'add', KEY, '/v', name, '/t', 'REG_SZ', '/d', command, '/f']);
    },
    async remove(name) {
      const { exitCode } = await execute(['reg.exe', 'query', KEY, '/v', name], { accept: [0, 1] });
      if (exitCode === 0) await execute(['reg.exe', 'delete', KEY, '/v', name, '/f']);
    },
  };
}

export const windowsRunKey: RunKey = runKeyWith(run);
