import { homedir } from 'node:os';

/** Environment variables by name. */
export type Environment = Readonly<Record<string, string | undefined>>;

/**
 * The home directory of the user: from the system's variable (`HOME`, `USERPROFILE`) in `env`, else from the account database. Empty when
 * unknown:
 * a container may run under a number without an account.
 */
export function userHome(env: Environment = {}, platform: NodeJS.Platform = process.platform): string {
  return env[platform === 'win32' ? 'USERPROFILE' : 'HOME'] || systemHome();
}

function systemHome(): string {
  try {
    return homedir();
  } catch {
    return '';
  }
}
