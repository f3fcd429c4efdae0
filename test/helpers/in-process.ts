import childProcess from 'node:child_process';
import { syncBuiltinESMExports } from 'node:module';
import { Server } from 'node:net';

const STARTERS = ['exec', 'execFile', 'execFileSync', 'execSync', 'fork', 'spawn', 'spawnSync'] as const;

/**
 * Keeps tests inside this process: starting a program or listening throws from here on. Tests that need either belong to the
 * project `integration`, whose files end in `.integration.test.ts`.
 */
export function stayInProcess(): void {
  Object.assign(childProcess, Object.fromEntries(STARTERS.map((name) => [name, refuse(`${name} starts a program`)])));
  // What all but the synchronous ones call, for runtimes whose modules do not change.
  Object.assign(childProcess.ChildProcess.prototype, { spawn: refuse('spawn starts a program') });
  Server.prototype.listen = refuse('listen opens a port');
  // Makes the replacements visible to modules that import these functions by name.
  syncBuiltinESMExports();
}

function refuse(what: string): () => never {
  return () => {
    throw new Error(`${what}: name the file of this test *.integration.test.ts`);
  };
}
