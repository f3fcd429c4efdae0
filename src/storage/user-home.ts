import { homedir } from 'node:os';
import type { Environment } from './places.ts';

/**
 * The home directory of the user: by the variable of the system (`HOME`, `USERPROFILE`) in `env`, else as the system knows it. Empty
 * where it does not: a container may run under a number that has no user.
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
