import type { RunOptions, RunResult } from '../../../os/run.ts';

/** Runs a program of the host with a clean environment. */
export type Run = (argv: readonly string[], options?: Omit<RunOptions, 'env' | 'cwd'>) => Promise<RunResult>;

/** Environment variables that host programs inherit: `PATH`, proxies, and trusted certificates. */
const PASSED = [
  'HOME',
  'LANG',
  'TMPDIR',
  'HTTP_PROXY',
  'HTTPS_PROXY',
  'NO_PROXY',
  'http_proxy',
  'https_proxy',
  'no_proxy',
  'SSL_CERT_FILE',
  'SSL_CERT_DIR',
];

/**
 * The environment of host programs: nothing that would redirect them (`DOCKER_HOST`, `CONTAINERD_ADDRESS`), no secret of ours, no service
 * manager socket.
 */
export function programEnvironment(
  env: Readonly<Record<string, string | undefined>>,
  path: string,
): Record<string, string> {
  const kept = PASSED.flatMap((name) => (env[name] === undefined ? [] : [[name, env[name]] as const]));
  return { ...Object.fromEntries(kept), PATH: path, LC_ALL: 'C' };
}
