import { createHash } from 'node:crypto';
import { lstatSync, mkdtempSync, readdirSync, readFileSync, readlinkSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import { type ChildOptions, type Outcome, rdctlProgram } from './cli.ts';

/** A user of the built tool without `RDCTL_HOME`: everything happens below a home directory of its own. */
export interface UserHome {
  home: string;
  /** Path below the home directory. */
  at(...names: string[]): string;
  env: Record<string, string>;
  rdctl(...argv: string[]): Promise<Outcome>;
  rdctlWith(options: ChildOptions, ...argv: string[]): Promise<Outcome>;
}

/** Must be called inside a test; a remaining service is shut down when it ends. `entry` is the built tool. */
export function userHome(entry: string, extra: Record<string, string> = {}): UserHome {
  // Short, because sockets are below it.
  const home = mkdtempSync(join(tmpdir(), 'rdu-'));
  const env = { HOME: home, ...extra };
  const rdctlWith: UserHome['rdctlWith'] = (options, ...argv) =>
    rdctlProgram(argv, { entry, ...options, env: { ...env, ...options.env } });
  onTestFinished(async () => {
    await rdctlWith({}, 'shutdown');
    rmSync(home, { recursive: true, force: true });
  });
  return {
    home,
    at: (...names) => join(home, ...names),
    env,
    rdctl: (...argv) => rdctlWith({}, ...argv),
    rdctlWith,
  };
}

/** Every file and link below a directory with mode and content, by relative path; directories only by name. */
export function fingerprint(directory: string): Record<string, string> {
  const found: Record<string, string> = {};
  for (const entry of readdirSync(directory, { recursive: true, withFileTypes: true })) {
    const path = join(entry.parentPath, entry.name);
    const facts = lstatSync(path);
    const mode = (facts.mode & 0o7777).toString(8);
    const content = facts.isSymbolicLink()
      ? readlinkSync(path)
      : facts.isFile()
        ? createHash('sha256').update(readFileSync(path)).digest('hex')
        : '';
    found[path.slice(directory.length + 1)] = `${mode} ${content}`;
  }
  return found;
}
